package mcp_test

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/isthmus-mesh/isthmus/test/testkit/unproven"
)

func TestUnprovenClientsAreServedNothing(t *testing.T) {
	t.Parallel()
	b := unproven.NewBorder(t)
	r := newRig(t, setup{tls: b.TLS, verifier: b.Verifier, tcp: true})
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(b.Credentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	unproven.IsRejected(t, r.server, conn)
	if n := len(r.server.GetServiceInfo()); n != 1 {
		t.Errorf("%d services are registered", n)
	}
}
