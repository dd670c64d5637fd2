package hostile

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// withListener has one more source, which its registry dials.
func withListener(t *testing.T) setup {
	t.Helper()
	// Another process hardly takes a port of so rare an address of loopback meanwhile.
	at := fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250)) //nolint:gosec // nothing is secret
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	// The program is ready once the source has listed: the registry dials as soon as it can.
	listed, ended := context.WithCancel(context.Background())
	var dialling sync.WaitGroup
	dialling.Go(func() { _ = dialAsRegistry(listed, address) })
	t.Cleanup(func() { ended(); dialling.Wait() })
	return setup{listener: address, sources: fmt.Sprintf("- name: dials\n  mcp: {listen: %q, collections: [%s]}\n", address, collection)}
}

// silentToListener opens connections to the listener of a source that say nothing or half
// a preface. The registry dials beside them, again and again, and must be served.
func silentToListener(t *testing.T, r *room) string {
	n, served := size(1200, 60), 0
	r.beside(t, func(ctx context.Context) error {
		c := newCrowd(ctx)
		for _, opening := range [][]byte{nil, []byte(preface)[:10]} {
			c.send(n, func(ctx context.Context, _ int) error {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.listener)
				if err != nil {
					return unlessRefused(err)
				}
				defer conn.Close()
				if _, err := conn.Write(opening); err != nil {
					return err
				}
				if *full {
					return awaitClosed(conn)
				}
				_ = conn.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = io.Copy(io.Discard, conn)
				return nil
			})
		}
		for range size(5, 2) {
			if err := dialAsRegistry(ctx, r.listener); err != nil {
				return fmt.Errorf("the registry was not served: %w", err)
			}
			served++
		}
		return c.wait()
	})
	return fmt.Sprintf("%d connections to a listening source that say nothing, %[1]d with half a preface; its registry was served %d times; %v rejections were counted",
		n, served, r.server.metrics(t).Sum("isthmus_source_streams_rejected_total"))
}

// unlessRefused is an error, unless the listener was between two streams of its registry,
// when it is closed.
func unlessRefused(err error) error {
	if op, is := err.(*net.OpError); is && op.Op == "dial" { //nolint:errorlint // net returns it as it is
		return nil
	}
	return err
}

// dialAsRegistry sends the state of a registry until it is ACKed, as registries do: the
// listener is closed for some time after each stream, and ends what arrives just then.
func dialAsRegistry(ctx context.Context, listener string) error {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := dialOnce(ctx, listener)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

func dialOnce(ctx context.Context, listener string) error {
	conn, err := grpc.NewClient("passthrough:///"+listener, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := mcp.NewResourceSinkClient(conn).EstablishResourceStream(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.Send(&mcp.Resources{Collection: collection, Nonce: "1"}); err != nil {
		return err
	}
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		if request.GetResponseNonce() == "1" {
			if detail := request.GetErrorDetail(); detail != nil {
				return fmt.Errorf("it was NACKed: %s", detail.GetMessage())
			}
			return nil
		}
	}
}
