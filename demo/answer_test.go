package demo_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/isthmus-mesh/isthmus/demo"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// One port answers all that the clients of the first steps speak.
func TestBackendAnswersHTTPAndGRPC(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	at, ended := startBackend(ctx, t)
	for name, set := range map[string]func(*http.Protocols){
		"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP/2.0": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		protocols := new(http.Protocols)
		set(protocols)
		transport := &http.Transport{Protocols: protocols}
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/any/path", http.NoBody)
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.Proto != name || string(body) != "hello from "+at+"\n" || response.Header.Get("answered-by") != at {
			t.Errorf("asked by %s, it answers by %s: %q, %v", name, response.Proto, body, response.Header)
		}
		transport.CloseIdleConnections()
	}
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if health, err := healthpb.NewHealthClient(conn).Check(ctx, nil); err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("its health is %v: %v", health, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it was ended, and says %v", err)
	}
}

func TestBackendSaysWhereItCannotListen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	at, ended := startBackend(ctx, t)
	if err := demo.Answer(ctx, at, io.Discard); err == nil || !strings.Contains(err.Error(), at) {
		t.Errorf("a second backend at %s: %v", at, err)
	}
	cancel()
	<-ended
}

// startBackend starts one at a free port, which it names.
func startBackend(ctx context.Context, t *testing.T) (at string, ended chan error) {
	t.Helper()
	ended = make(chan error, 1)
	out, in := io.Pipe()
	go func() { ended <- demo.Answer(ctx, "127.0.0.1:0", in) }()
	said := make([]byte, 200)
	n, err := out.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	_, at, _ = strings.Cut(string(said[:n]), " at ")
	at, _, _ = strings.Cut(at, ";")
	return at, ended
}
