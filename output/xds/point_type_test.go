package xds_test

import (
	"fmt"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// stand returns how a client stands with a type; nothing if it has not asked.
func (r *rig) stand(id, typeURL string) session.TypeStatus {
	r.t.Helper()
	for _, client := range r.engine.Clients() {
		for _, shown := range client.Types {
			if client.ID == id && shown.Type == typeURL {
				return shown
			}
		}
	}
	return session.TypeStatus{}
}

func (r *rig) awaitStanding(id, typeURL string, want session.Phase) {
	r.t.Helper()
	r.await(fmt.Sprintf("%s of %s by %s", want, typeURL, id), func() bool { return r.stand(id, typeURL).State == want })
}

// Each type has its own answers, NACKs and subscriptions.
func TestPoint4_TypesHaveNothingInCommon(t *testing.T) {
	for _, connect := range []func(*rig, xdsclient.Config) *xdsclient.Client{(*rig).sotwWith, (*rig).deltaWith} {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{Node: xdsclient.Node("client", "shop", "envoy"), Manual: true})
		c.Subscribe(cds)
		c.Subscribe(eds, clusterOf("a.example"))
		c.Await("both", func(s *xdsclient.State) bool { return s.Open(cds) == 1 && s.Open(eds) == 1 })
		c.NACKAnd(eds, "no", xdsclient.Rider{})
		r.awaitStanding("client", eds, session.NACKed)
		if shown := r.stand("client", cds); shown.State != session.Waiting || shown.NACKs != 0 {
			t.Errorf("after the NACK of assignments clusters are shown with %+v", shown)
		}
		c.Accept(cds)
		r.awaitStanding("client", cds, session.ACKed)
		if shown := r.stand("client", eds); shown.State != session.NACKed || shown.ACKed != "" {
			t.Errorf("after the acceptance of clusters assignments are shown with %+v", shown)
		}
		c.Unsubscribe(eds, clusterOf("a.example"))
		r.put(service("shop", "b.example"))
		c.Accept(cds)
		c.AwaitHeld(cds, clustersOf("a.example", "b.example", probe)...)
	}
}

// An answer of one type that carries the nonce of another is none.
func TestPoint4_NonceOfAnotherTypeAnswersNothing(t *testing.T) {
	r := newProbed(t, "a.example")
	s := openRaw(t, r.dial(), adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: cds})
	s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResponseNonce: s.delta().GetNonce()})
	s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: clustersOf("a.example")})
	s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResponseNonce: s.delta().GetNonce()})
	s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: lds, ResourceNamesSubscribe: []string{"none"}}) // its answer tells that all has been taken in
	s.delta()
	if shown := r.stand("raw", eds); shown.State != session.Waiting {
		t.Errorf("assignments are shown with %+v", shown)
	}
}

// What was sent, ACKed and NACKed is shown for each stream and type.
func TestPoint7_EachStreamIsShown(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		node := xdsclient.Node("client", "shop", "envoy")
		c, sibling := connect(r, xdsclient.Config{Node: node, NACK: nackPoison}), r.delta("sibling", "shop")
		c.Subscribe(eds, clusterOf("a.example"))
		sibling.Subscribe(eds, clusterOf("a.example"))
		r.awaitStanding("client", eds, session.ACKed)
		good := r.stand("client", eds)
		if good.Sent == "" || good.ACKed != good.Sent || good.Subscribed != 1 || good.Held != 1 || good.Since.IsZero() || good.NACKs != 0 {
			t.Errorf("after an acceptance shown with %+v", good)
		}
		r.put(endpoint("shop", "a.example", "one", poison))
		r.awaitStanding("client", eds, session.NACKed)
		bad := r.stand("client", eds)
		if bad.Sent == good.Sent || bad.ACKed != good.ACKed || bad.NACKs != 1 || bad.Since.Before(good.Since) ||
			bad.Reason != clusterOf("a.example")+": it leads to "+poison {
			t.Errorf("after a NACK shown with %+v", bad)
		}
		r.awaitStanding("sibling", eds, session.ACKed)
		if other := r.stand("sibling", eds); other.NACKs != 0 || other.Reason != "" {
			t.Errorf("another stream is shown with %+v", other)
		}
	})
}

// Of a stream of state of the world the first request of each type is answered,
// whatever version it names: the client may hold less than it says.
func TestPoint17_FirstRequestIsAnswered(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.sotw("client", "shop")
	c.Subscribe(cds)
	c.Subscribe(eds, clusterOf("a.example"))
	c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	c.AwaitHeld(eds, clusterOf("a.example"))
	c.Reconnect(true)
	c.Await("both once more", func(s *xdsclient.State) bool { return s.Responses(cds) == 2 && s.Responses(eds) == 2 })
	c.Disconnect()
	r.remove(service("shop", probe), service("shop", "a.example"))
	r.dispatched() // else it may still be sent what there was
	c.Reconnect(true)
	c.Await("both, with nothing in them", func(s *xdsclient.State) bool {
		return s.Responses(cds) == 3 && s.Responses(eds) == 3 && len(s.Names(cds)) == 0
	})
}

// Of requests that wait for each other the last one counts.
func TestPoint21_NewestRequestCounts(t *testing.T) {
	r := newProbed(t, "a.example", "b.example", "c.example")
	s := openRaw(t, r.dial(), adsSotw)
	ask := func(nonce string, hosts ...string) {
		s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: eds, ResponseNonce: nonce, ResourceNames: clustersOf(hosts...)})
	}
	ask("", "a.example")
	ask("", "a.example", "b.example", "d.example")
	ask("", "c.example", probe)
	s.say(&discoveryv3.DiscoveryRequest{TypeUrl: rds, ResourceNames: []string{"none"}})
	r.await("all requests to be taken in", func() bool { return r.stand("raw", rds).Subscribed == 1 })
	if n := r.stand("raw", eds).Subscribed; n != 2 {
		t.Errorf("%d names are subscribed, want those of the last request", n)
	}
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"), endpoint("shop", "b.example", "one", "10.0.0.2"))
	r.put(endpoint("shop", "c.example", "one", "10.0.0.3"))
	r.dispatched()
	for { // what was asked for in between may have been sent, as it was then
		last := s.sotw()
		if last.GetTypeUrl() != eds {
			continue
		}
		ask(last.GetNonce(), "c.example", probe)
		for _, body := range last.GetResources() {
			a := assignmentIn(t, body)
			switch got := addressIn(a); {
			case a.GetClusterName() == clusterOf("c.example") && got == "10.0.0.3":
				return
			case got == "10.0.0.2":
				t.Fatalf("a change of %s was sent, which is not asked for any more", a.GetClusterName())
			}
		}
	}
}

// Parameters of resources are no names: what else is in the request counts.
func TestPoint49_ParametersArePassedOver(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	locator := &discoveryv3.ResourceLocator{Name: clusterOf("b.example"), DynamicParameters: map[string]string{"env": "prod"}}
	d, s := openRaw(t, r.dial(), adsDelta), openRaw(t, r.dial(), adsSotw)
	d.say(&discoveryv3.DeltaDiscoveryRequest{
		Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf("a.example"),
		ResourceLocatorsSubscribe: []*discoveryv3.ResourceLocator{locator}, ResourceLocatorsUnsubscribe: []*discoveryv3.ResourceLocator{locator},
	})
	if m := d.delta(); len(m.GetResources()) != 1 || m.GetResources()[0].GetName() != clusterOf("a.example") || len(m.GetRemovedResources()) != 0 {
		t.Errorf("got %v", m)
	}
	s.say(&discoveryv3.DiscoveryRequest{
		Node: rawNode, TypeUrl: eds, ResourceNames: clustersOf("a.example"), ResourceLocators: []*discoveryv3.ResourceLocator{locator},
	})
	if m := s.sotw(); len(m.GetResources()) != 1 || assignmentIn(t, m.GetResources()[0]).GetClusterName() != clusterOf("a.example") {
		t.Errorf("got %v", m)
	}
}

// Collections are not served. Who asks for one by the name of all that is in it
// is answered at once that there is no such thing, and loses nothing else.
func TestPoint34_CollectionsAreSaidToBeMissing(t *testing.T) {
	r := newProbed(t, "a.example")
	const collection = "xdstp://isthmus/envoy.config.endpoint.v3.ClusterLoadAssignment/shop/*"
	s := openRaw(t, r.dial(), adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: append(clustersOf("a.example"), collection)})
	m := s.delta()
	if len(m.GetResources()) != 1 || len(m.GetRemovedResources()) != 1 || m.GetRemovedResources()[0] != collection {
		t.Errorf("got %v", m)
	}
}

// Endpoints change: clusters, listeners and routes do not, and so are not sent.
func TestPoint55_EndpointsChangeNothingElse(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := grpcOf(r, connect, "a.example")
		envoy := connect(r, xdsclient.Config{Node: xdsclient.Node("envoy", "shop", "envoy"), Follow: xdsclient.FollowClusters})
		envoy.Subscribe(cds)
		c.AwaitHeld(lds, "a.example:80")
		c.AwaitHeld(rds, clusterOf("a.example"))
		envoy.AwaitHeld(eds, clustersOf("a.example", probe)...)
		before := map[string]int{cds: responses(c, cds), lds: responses(c, lds), rds: responses(c, rds)}
		for i := range 10 {
			address := fmt.Sprintf("10.0.1.%d", i)
			r.put(endpoint("shop", "a.example", "one", address))
			c.Await("the change", leads("a.example", address))
			envoy.Await("the change", leads("a.example", address))
		}
		r.dispatched()
		for _, typeURL := range []string{cds, lds, rds} {
			if n := responses(c, typeURL) - before[typeURL]; n != 0 {
				t.Errorf("gRPC was sent %d more responses of %s", n, typeURL)
			}
		}
		if n := responses(envoy, cds); n != 1 {
			t.Errorf("Envoy was sent %d responses of clusters", n)
		}
	})
}

// A change of clusters that the client thinks about, or has NACKed, does not
// hold back endpoints.
func TestPoint56_EndpointsDoNotWaitForConfiguration(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{Manual: true})
		c.Subscribe(cds)
		c.Accept(cds)
		c.Subscribe(eds, clustersOf("a.example", "b.example")...)
		c.Accept(eds)
		r.put(speaking(service("shop", "b.example"), "HTTP2"))
		c.Await("the cluster", func(s *xdsclient.State) bool { return s.Open(cds) == 1 })
		c.Accept(eds) // b.example's, which follows its cluster
		for i := range 5 {
			address := fmt.Sprintf("10.0.1.%d", i)
			r.put(endpoint("shop", "a.example", "one", address))
			c.Accept(eds)
			c.Await("the change", leads("a.example", address))
			if i == 2 {
				c.NACKAnd(cds, "no", xdsclient.Rider{})
			}
		}
	})
}
