package xds_test

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// A request without a nonce that comes while a response is pending changes the
// subscription, and is no answer to the response.
func TestPoint11_EmptyNonceAnswersNothing(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("client", "shop", "envoy"), Manual: true})
	c.Subscribe(eds, clusterOf("a.example"))
	c.Await("the first", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
	c.Expect(eds, clusterOf("b.example"))
	c.Send(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: clustersOf("a.example", "b.example")})
	r.await("the request to be taken in", func() bool { return r.stand("client", eds).Subscribed == 2 })
	r.dispatched()
	if shown := r.stand("client", eds); shown.State != session.Waiting || shown.ACKed != "" {
		t.Errorf("with a response pending it is shown with %+v", shown)
	}
	c.Accept(eds)
	c.Accept(eds)
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	r.awaitStanding("client", eds, session.ACKed)
}
