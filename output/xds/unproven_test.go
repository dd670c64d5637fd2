package xds_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/isthmus-mesh/isthmus/test/testkit/unproven"
)

func TestUnprovenClientsAreServedNothing(t *testing.T) {
	t.Parallel()
	r := newVouched(t)
	unproven.IsRejected(t, r.server, r.dial(grpc.WithTransportCredentials(credentials.NewTLS(r.ca.Client()))))
	if n := len(r.server.GetServiceInfo()); n != 7 {
		t.Errorf("%d services are registered", n)
	}
}
