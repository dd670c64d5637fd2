package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Answer runs a backend for trying a client out, until ctx ends. On one port it answers
// HTTP/1.1 and HTTP/2, both without TLS, and the health service of gRPC. Each answer names
// its backend.
func Answer(ctx context.Context, address string, out io.Writer) error {
	var lc net.ListenConfig
	listen, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("starting the backend: %w", err)
	}
	name := listen.Addr().String()
	fmt.Fprintf(out, "a backend answers HTTP and gRPC at %s; Ctrl-C ends it\n", name)
	server := &http.Server{Handler: answers(name), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	// The backend ends as a crash would: no request in progress matters.
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listen); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the backend at %s: %w", name, err)
	}
	return nil
}

// answers greets, and has calls of gRPC answered by a server of their own.
func answers(name string) http.Handler {
	calls := grpc.NewServer()
	healthpb.RegisterHealthServer(calls, &backend{name: name})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			calls.ServeHTTP(w, r)
			return
		}
		w.Header().Set(answeredBy, name)
		fmt.Fprintf(w, "hello from %s\n", name)
	})
}
