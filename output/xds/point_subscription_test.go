package xds_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func TestPoint22_DroppedNamesAreSentAgain(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotw("client", "shop")
	c.Subscribe(eds, clustersOf("a.example", "b.example")...)
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	c.Unsubscribe(eds, clusterOf("a.example"))
	c.Subscribe(eds, clusterOf("a.example"))
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	if n := received(c, eds, clusterOf("b.example")); n != 1 {
		t.Errorf("b.example was sent %d times", n)
	}
}

// A name that is dropped and asked for again while a response is on its way
// is sent again: the client has forgotten it. Both requests carry a nonce that
// is stale by then.
func TestPoint22_DroppedAndAskedForAgainInOneBreath(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotw("client", "shop")
	c.Subscribe(eds, clustersOf("a.example", "b.example")...)
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	c.Hold()
	r.put(endpoint("shop", "b.example", "one", "10.0.0.2"))
	c.Await("a response", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
	c.Unsubscribe(eds, clusterOf("a.example"))
	c.Subscribe(eds, clusterOf("a.example"))
	c.Release()
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
}

func TestPoint23_StarAmongNames(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(cds, clusterOf("later.example"), "*")
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
		r.put(service("shop", "later.example"), service("shop", "other.example"))
		c.AwaitHeld(cds, clustersOf("a.example", "later.example", "other.example", probe)...)
		c.Unsubscribe(cds, "*")
		c.Quiet(cds, clusterOf(probe))
		r.put(service("shop", "third.example"))
		r.dispatched()
		c.Quiet(cds, clusterOf(probe))
		c.AwaitHeld(cds, clusterOf("later.example"))
		if n := received(c, cds, clusterOf("third.example")); n != 0 {
			t.Error("everything was still sent after * had been dropped")
		}
	})
}

// Load assignments of everything are sent to whoever asks for them by "*".
func TestPoint23_StarOfAssignments(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(eds, "*")
		c.AwaitHeld(eds, clustersOf("a.example", probe)...)
		r.put(service("shop", "b.example"), endpoint("shop", "b.example", "one", "10.0.0.1"))
		c.Await("the new one", leads("b.example", "10.0.0.1"))
	})
}

func TestPoint24_ImpliedWildcardEndsWithTheFirstName(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotw("client", "shop")
	c.Subscribe(cds)
	c.AwaitHeld(cds, clustersOf("a.example", "b.example", probe)...)
	c.Subscribe(cds, clusterOf("a.example"))
	c.Quiet(cds, clusterOf(probe))
	r.put(service("shop", "c.example"))
	r.dispatched()
	c.Quiet(cds, clusterOf(probe))
	c.AwaitHeld(cds, clusterOf("a.example"))
	if n := received(c, cds, clusterOf("c.example")); n != 0 {
		t.Error("everything was still sent after a name had been given")
	}
	c.Unsubscribe(cds, clusterOf("a.example")) // no names: that is nothing now, not everything
	c.Quiet(cds, clusterOf(probe))
	before := responses(c, cds)
	r.put(speaking(service("shop", "a.example"), "HTTP2"))
	r.dispatched()
	c.Quiet(cds, clusterOf(probe))
	if n := responses(c, cds) - before; n != 0 {
		t.Errorf("%d responses after everything had been unsubscribed", n)
	}
}

func TestPoint25_DeltaWildcardOutlivesNames(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.delta("client", "shop")
	c.Subscribe(cds)
	c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	c.Subscribe(cds, clusterOf("a.example"))
	c.Await("a.example again", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("a.example")) == 2 })
	r.put(service("shop", "b.example"))
	c.AwaitHeld(cds, clustersOf("a.example", "b.example", probe)...)
	c.Unsubscribe(cds, clusterOf("a.example"))
	c.Await("word of a.example", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("a.example")) == 3 })
	c.AwaitHeld(cds, clustersOf("a.example", "b.example", probe)...)
	c.Subscribe(cds, clusterOf("a.example"))
	c.Unsubscribe(cds, "*")
	c.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds}) // emptiness means nothing any more
	c.Quiet(cds, clusterOf("no.example"))
	r.put(service("shop", "c.example"))
	r.dispatched()
	c.Quiet(cds, clusterOf("no.example"))
	c.AwaitHeld(cds, clusterOf("a.example"))
	if n := received(c, cds, clusterOf("c.example")); n != 0 {
		t.Error("everything was still sent after * had been dropped")
	}
}

func TestPoint25_DeltaFirstRequestWithNamesIsNoWildcard(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.delta("client", "shop")
	c.Subscribe(cds, clusterOf("a.example"))
	c.AwaitHeld(cds, clusterOf("a.example"))
	c.Unsubscribe(cds, clusterOf("a.example"))
	c.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds})
	c.Quiet(cds, clusterOf("no.example"))
	r.put(service("shop", "b.example"))
	r.dispatched()
	c.Quiet(cds, clusterOf("no.example"))
	c.AwaitHeld(cds)
}

func TestPoint26_EmptyListOfAssignmentsIsNothing(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{Node: xdsclient.Node("grpc", "shop", "gRPC C++")})
		for _, typeURL := range []string{eds, rds} {
			c.Subscribe(typeURL)
			c.Quiet(typeURL, clusterOf(probe))
			c.AwaitHeld(typeURL)
			if n := received(c, typeURL, clusterOf("a.example")); n != 0 {
				t.Error("an empty list of names was answered with everything")
			}
		}
	})
}

func TestPoint27_NamesThatAreNotThereYet(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t)
		c := connect(r, xdsclient.Config{Node: xdsclient.Node("grpc", "shop", "gRPC Java")})
		c.Subscribe(lds, "later.example:80")
		for _, typeURL := range []string{cds, eds, rds} {
			c.Subscribe(typeURL, clusterOf("later.example"))
			c.Quiet(typeURL, clusterOf(probe))
		}
		r.put(service("shop", "later.example"), endpoint("shop", "later.example", "one", "10.0.0.1"))
		c.AwaitHeld(lds, "later.example:80")
		for _, typeURL := range []string{cds, eds, rds} {
			c.AwaitHeld(typeURL, clusterOf("later.example"))
		}
		c.Await("its endpoint", leads("later.example", "10.0.0.1"))
	})
}

func TestPoint28_UnsubscribingIsNotAnswered(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(eds, clustersOf("a.example", "b.example")...)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
		c.Unsubscribe(eds, clusterOf("a.example"))
		c.Quiet(eds, clusterOf(probe))
		r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
		r.dispatched()
		c.Quiet(eds, clusterOf(probe))
		if n := responses(c, eds); n != 1 {
			t.Errorf("%d responses", n)
		}
	})
}

func TestPoint28_UnsubscribingUnderAWildcardIsAnswered(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.delta("client", "shop")
	c.Subscribe(cds, "*", clusterOf("a.example"), clusterOf("no.example"))
	c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	c.Await("word of no.example", func(s *xdsclient.State) bool { return s.Removals(cds, clusterOf("no.example")) == 1 })
	c.Unsubscribe(cds, clustersOf("a.example", "no.example")...)
	c.Await("the resource", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("a.example")) == 2 })
	c.Await("its removal", func(s *xdsclient.State) bool { return s.Removals(cds, clusterOf("no.example")) == 2 })
}

// Dropping the name and the wildcard together leaves nothing to answer.
func TestPoint28_UnsubscribingNameAndWildcard(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.delta("client", "shop")
	c.Subscribe(cds, "*", clusterOf("a.example"), clusterOf("no.example"))
	c.Await("word of no.example", func(s *xdsclient.State) bool { return s.Removals(cds, clusterOf("no.example")) == 1 })
	c.Unsubscribe(cds, "*", clusterOf("a.example"), clusterOf("no.example"))
	c.Quiet(cds, clusterOf(probe))
	c.Read(func(s *xdsclient.State) {
		if n := s.Removals(cds, clusterOf("no.example")); n != 1 || s.Responses(cds) != 1 {
			t.Errorf("%d responses, and no.example was removed %d times", s.Responses(cds), n)
		}
	})
}

// Who asks for everything again before it has answered what it was sent before may
// take that for the answer. What is gone by then is removed.
func TestPoint28_AWildcardThatIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newProbed(t, "a.example")
	c := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("again", "shop", "envoy"), Manual: true})
	c.Subscribe(cds, "*")
	c.Await("both clusters", func(s *xdsclient.State) bool { return s.Open(cds) > 0 })
	r.remove(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
	r.dispatched()
	c.Unsubscribe(cds, "*")
	c.Subscribe(cds, "*")
	c.Release()
	c.AwaitHeld(cds, clusterOf(probe))
}

func TestPoint29_PhantomUnsubscriptions(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.delta("client", "shop")
	c.Subscribe(eds, clusterOf("a.example"))
	c.AwaitHeld(eds, clusterOf("a.example"))
	c.Unsubscribe(eds, clusterOf("never.example"), "*")
	c.Quiet(eds, clusterOf(probe))
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
	c.Await("the change", leads("a.example", "10.0.0.2"))
	if n := responses(c, eds); n != 2 {
		t.Errorf("%d responses", n)
	}
}

func TestPoint30_ResubscribeResends(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.delta("client", "shop")
	c.Subscribe(cds, "*")
	c.Subscribe(eds, clusterOf("a.example"))
	c.AwaitHeld(eds, clusterOf("a.example"))
	c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	c.Subscribe(eds, clusterOf("a.example"))
	c.Await("the assignment again", func(s *xdsclient.State) bool { return s.Received(eds, clusterOf("a.example")) == 2 })
	c.Subscribe(cds, clusterOf("a.example")) // has it by wildcard
	c.Await("the cluster again", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("a.example")) == 2 })
}

// What a client has when it reconnects is not sent, but what it then asks for
// by name a second time is.
func TestPoint30_ResubscribeAtOnceAfterResuming(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.delta("client", "shop")
	c.Subscribe(eds, clusterOf("a.example"))
	c.AwaitHeld(eds, clusterOf("a.example"))
	c.Reconnect(true)
	c.Subscribe(eds, clusterOf("a.example"))
	c.Await("the assignment again", func(s *xdsclient.State) bool { return s.Received(eds, clusterOf("a.example")) == 2 })
}

func TestPoint31_MissingIsSaidAtOnceAndRemembered(t *testing.T) {
	r := newProbed(t)
	c := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("grpc", "shop", "gRPC Go")})
	types := map[string]string{cds: clusterOf("a.example"), eds: clusterOf("a.example"), rds: clusterOf("a.example"), lds: "a.example:80"}
	for typeURL, name := range types {
		c.Subscribe(typeURL, name)
		c.Await("word of it", func(s *xdsclient.State) bool { return s.Removals(typeURL, name) == 1 })
	}
	r.put(service("shop", "a.example"))
	for typeURL, name := range types {
		c.AwaitHeld(typeURL, name)
	}
}

// An Envoy that asks for a route configuration that does not exist is sent one, whatever
// the name: of a removal it would take no notice, and yet no longer stop waiting.
func TestPoint31_EnvoyIsSentRoutesOfAnyName(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		t.Helper()
		c := connect(newProbed(t, "a.example"), xdsclient.Config{})
		const passes, leadsNowhere = "PassthroughCluster", ""
		want := map[string]string{
			"80": passes, "a.example:80": passes,
			"inbound|80||a.example": leadsNowhere, "mine": leadsNowhere, "http.x": leadsNowhere, strings.Repeat("long", 500): leadsNowhere,
		}
		names := slices.Sorted(maps.Keys(want))
		for range 2 {
			c.Subscribe(rds, names...)
			for _, name := range names {
				c.Await("routes", func(s *xdsclient.State) bool {
					is, ok := s.Get(rds, name)
					return ok && describeResource(is) == want[name] && s.Removals(rds, name) == 0
				})
			}
			c.Unsubscribe(rds, names...)
		}
	})
}

// While some source has not been listed, no client gets the answer that a name is missing.
func TestPoint31_MissingIsNotSaidTooEarly(t *testing.T) {
	r := newRig(t, setup{incomplete: true})
	r.put(service("shop", probe))
	c := r.delta("client", "shop")
	c.Subscribe(cds, clusterOf("a.example"))
	c.Quiet(cds, clusterOf(probe))
	if n := responses(c, cds); n != 0 {
		t.Error("a name was said to be missing before all sources were listed")
	}
	r.complete = true
	r.apply()
	c.Await("word of it", func(s *xdsclient.State) bool { return s.Removals(cds, clusterOf("a.example")) == 1 })
}

func TestPoint32_SubscriptionsRideOnAnything(t *testing.T) {
	r := newProbed(t, "a.example", "b.example", "c.example")
	c := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("client", "shop", "envoy"), Manual: true})
	c.Subscribe(eds, clusterOf("a.example"))
	c.AcceptAnd(eds, xdsclient.Rider{Subscribe: clustersOf("b.example"), Unsubscribe: clustersOf("a.example")})
	c.NACKAnd(eds, "no", xdsclient.Rider{Subscribe: clustersOf("c.example")})
	c.Accept(eds)
	c.AwaitHeld(eds, clusterOf("c.example"))
	c.Release()
	// Subscribed and unsubscribed in one message: unsubscribed.
	c.Send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: eds, ResourceNamesSubscribe: clustersOf("a.example"), ResourceNamesUnsubscribe: clustersOf("a.example"),
	})
	c.Quiet(eds, clusterOf(probe))
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
	r.dispatched()
	c.Quiet(eds, clusterOf(probe))
	if n := received(c, eds, clusterOf("a.example")); n != 1 {
		t.Errorf("a.example was sent %d times", n)
	}
}

func TestPoint33_StaleNonceDoesNotLoseTheSubscription(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.delta("client", "shop")
	c.Subscribe(eds, clusterOf("a.example"))
	c.AwaitHeld(eds, clusterOf("a.example"))
	for nonce, host := range map[string]string{"no such nonce": "b.example", "0": probe} {
		c.Expect(eds, clusterOf(host))
		c.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: nonce, ResourceNamesSubscribe: clustersOf(host)})
		c.Await(host, func(s *xdsclient.State) bool { return s.Received(eds, clusterOf(host)) == 1 })
	}
}
