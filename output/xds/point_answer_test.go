package xds_test

import (
	"slices"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// both runs a test with a client of each variant. Configure makes its behaviour.
func both(t *testing.T, test func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client)) {
	t.Helper()
	named := func(c xdsclient.Config, name string) xdsclient.Config {
		if c.Node == nil {
			c.Node = xdsclient.Node(name, "shop", "envoy")
		}
		return c
	}
	t.Run("sotw", func(t *testing.T) {
		test(t, func(r *rig, c xdsclient.Config) *xdsclient.Client { return r.sotwWith(named(c, "sotw")) })
	})
	t.Run("delta", func(t *testing.T) {
		test(t, func(r *rig, c xdsclient.Config) *xdsclient.Client { return r.deltaWith(named(c, "delta")) })
	})
}

// poisoned NACKs load assignments that lead to an address.
const poison = "10.6.6.6"

func nackPoison(r xdsclient.Resource) string {
	if r.Type == eds && slices.Contains(addressesOf(r), poison) {
		return "it leads to " + poison
	}
	return ""
}

// responses counts the responses of a type that a client got so far.
func responses(c *xdsclient.Client, typeURL string) (n int) {
	c.Read(func(s *xdsclient.State) { n = s.Responses(typeURL) })
	return n
}

func received(c *xdsclient.Client, typeURL, name string) (n int) {
	c.Read(func(s *xdsclient.State) { n = s.Received(typeURL, name) })
	return n
}

func TestPoint10_StaleNonceAnswersNothing(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("client", "shop", "envoy"), Manual: true})
	c.Subscribe(eds, clusterOf("a.example"))
	c.Accept(eds)
	stale := c.Nonce(eds)
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
	c.Await("the change", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
	c.Send(&discoveryv3.DiscoveryRequest{
		TypeUrl: eds, ResponseNonce: stale, ResourceNames: clustersOf("a.example", "b.example"),
		ErrorDetail: &statuspb.Status{Code: 3, Message: "stale"},
	})
	c.Accept(eds)
	c.Release()
	c.Quiet(eds, clusterOf(probe))
	if n := received(c, eds, clusterOf("b.example")); n != 0 {
		t.Error("a stale request was answered")
	}
	if n := nacks(r, eds); n != 0 {
		t.Errorf("%d NACKs were counted", n)
	}
}

func TestPoint11_EmptyNonceSubscribes(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotw("client", "shop")
	c.Subscribe(eds, clusterOf("a.example"))
	c.AwaitHeld(eds, clusterOf("a.example"))
	c.Expect(eds, clusterOf("b.example"))
	c.Send(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: clustersOf("a.example", "b.example")})
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	if n := received(c, eds, clusterOf("a.example")); n != 1 {
		t.Errorf("a.example was sent %d times", n)
	}
}

func TestPoint12_ACKAloneIsNotAnswered(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(cds, "*")
		c.Subscribe(eds, clusterOf("a.example"))
		c.AwaitHeld(eds, clusterOf("a.example"))
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
		c.Quiet(eds, clusterOf(probe))
		c.Quiet(cds, clusterOf(probe))
		if cdsGot, edsGot := responses(c, cds), responses(c, eds); cdsGot != 1 || edsGot != 1 {
			t.Errorf("%d CDS and %d EDS responses, want the first of each", cdsGot, edsGot)
		}
	})
}

func TestPoint12_ACKWithMoreNamesIsAnswered(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{Manual: true})
		c.Subscribe(eds, clusterOf("a.example"))
		c.AcceptAnd(eds, xdsclient.Rider{Subscribe: clustersOf("b.example")})
		c.Accept(eds)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
		if n := received(c, eds, clusterOf("a.example")); n != 1 {
			t.Errorf("a.example was sent %d times", n)
		}
	})
}

func TestPoint12_WhatMovedOnMeanwhileIsSent(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{Manual: true})
		c.Subscribe(eds, clusterOf("a.example"))
		c.Await("the first", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
		r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
		r.dispatched()
		c.Accept(eds)
		c.Accept(eds)
		c.Await("the newest", leads("a.example", "10.0.0.2"))
	})
}

// A client may NACK with the very version it was sent, and with none.
func TestPoint13_NACKIsKnownByItsReason(t *testing.T) {
	for _, version := range []string{"sent", ""} {
		r := newProbed(t, "a.example")
		c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("client", "shop", "envoy"), Manual: true})
		c.Subscribe(eds, clusterOf("a.example"))
		c.Await("the first", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
		if version != "" {
			version = c.Version(eds)
		}
		c.Send(&discoveryv3.DiscoveryRequest{
			TypeUrl: eds, VersionInfo: version, ResponseNonce: c.Nonce(eds), ResourceNames: clustersOf("a.example"),
			ErrorDetail: &statuspb.Status{Code: 3, Message: "no"},
		})
		nonce := c.Nonce(eds)
		c.Accept(eds) // of what the NACK has answered: for this client it is over before the next response comes
		c.Expect(eds, clusterOf(probe))
		c.Send(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: clustersOf("a.example", probe), ResponseNonce: nonce})
		c.Accept(eds)
		c.AwaitHeld(eds, clustersOf("a.example", probe)...)
		if n := nacks(r, eds); n != 1 {
			t.Errorf("with version %q %d NACKs were counted", version, n)
		}
		if n := received(c, eds, clusterOf("a.example")); n != 1 {
			t.Errorf("with version %q what was NACKed was sent %d times", version, n)
		}
	}
}

func TestPoint14_NACKedIsNotRepeated(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{NACK: nackPoison})
		c.Subscribe(eds, clustersOf("a.example", "b.example")...)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
		r.put(endpoint("shop", "a.example", "one", poison))
		c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(eds) >= 1 })
		r.put(endpoint("shop", "b.example", "one", "10.0.0.2"))
		c.Await("what is not wrong", leads("b.example", "10.0.0.2"))
		r.dispatched()
		c.Quiet(eds, clusterOf(probe))
		if n := received(c, eds, clusterOf("a.example")); n != 2 {
			t.Errorf("a.example was sent %d times, want the good one and the bad one", n)
		}
		r.put(endpoint("shop", "a.example", "one", "10.0.0.3"))
		c.Await("the fix", leads("a.example", "10.0.0.3"))
	})
}

func TestPoint14_NACKedFullStateIsNotRepeated(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{NACK: func(res xdsclient.Resource) string {
			if res.Name == clusterOf("bad.example") {
				return "bad"
			}
			return ""
		}})
		c.Subscribe(cds, "*")
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
		r.put(service("shop", "bad.example"))
		c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(cds) >= 1 })
		r.dispatched()
		c.Subscribe(eds, clusterOf("a.example")) // the other types go on
		c.AwaitHeld(eds, clusterOf("a.example"))
		if n := responses(c, cds); n != 2 {
			t.Errorf("%d responses", n)
		}
		r.remove(service("shop", "bad.example"))
		c.Await("the fix", func(s *xdsclient.State) bool { return s.Responses(cds) == 3 })
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	})
}

func TestPoint15_NACKWithSubscription(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{Manual: true})
		c.Subscribe(eds, clusterOf("a.example"))
		c.NACKAnd(eds, "no", xdsclient.Rider{Subscribe: clustersOf("b.example")})
		c.Accept(eds)
		c.AwaitHeld(eds, clusterOf("b.example"))
		if n := received(c, eds, clusterOf("a.example")); n != 1 {
			t.Errorf("what was NACKed was sent %d times", n)
		}
	})
}

func TestPoint19_NothingIsSentTwice(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(cds, "*")
		c.Subscribe(eds, clusterOf("a.example"))
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
		c.AwaitHeld(eds, clusterOf("a.example"))

		r.put(speaking(service("shop", "a.example"), "TCP"))  // makes no difference to the cluster
		r.put(speaking(service("shop", "a.example"), "HTTP")) // nor does this
		r.put(endpoint("shop", "a.example", "one", "10.0.0.1"))
		r.dispatched()
		c.Quiet(eds, clusterOf(probe))
		c.Quiet(cds, clusterOf(probe))
		if cdsGot, edsGot := responses(c, cds), responses(c, eds); cdsGot != 1 || edsGot != 1 {
			t.Errorf("%d CDS and %d EDS responses, want the first of each", cdsGot, edsGot)
		}
	})
}

// What came back to what it was while the client was busy is not sent.
func TestPoint19_ThereAndBack(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(eds, clustersOf("a.example", "b.example")...)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
		c.Hold()
		r.put(endpoint("shop", "b.example", "one", "10.0.0.2"))
		c.Await("a response", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
		r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
		r.dispatched()
		r.put(endpoint("shop", "a.example", "one", "10.0.0.1"))
		r.dispatched()
		c.Release()
		c.Quiet(eds, clusterOf(probe))
		if n := received(c, eds, clusterOf("a.example")); n != 1 {
			t.Errorf("a.example was sent %d times", n)
		}
	})
}

func TestPoint20_ChangesWaitForTheAnswerAndComeTogether(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(cds, "*")
		c.Subscribe(eds, clustersOf("a.example", "b.example")...)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
		c.Hold()
		r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
		c.Await("a response", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
		before := responses(c, eds)
		for _, address := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5"} {
			r.put(endpoint("shop", "a.example", "one", address), endpoint("shop", "b.example", "one", address))
			r.dispatched()
		}
		// Another type is not held up.
		r.put(service("shop", "c.example"))
		c.Await("the new cluster", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("c.example")) == 1 })
		c.Release()
		c.Await("the newest", leads("a.example", "10.0.0.5"))
		c.Await("the newest", leads("b.example", "10.0.0.5"))
		if n := responses(c, eds); n != before+1 {
			t.Errorf("%d responses brought the rest", n-before)
		}
	})
}

// Past its patience the server sends the newest all the same, and what is
// answered late still counts.
func TestPoint20_PatienceEnds(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newRig(t, setup{engine: push.Config{Patience: time.Millisecond}})
		r.put(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
		c := connect(r, xdsclient.Config{Manual: true, Overlap: true})
		c.Subscribe(eds, clusterOf("a.example"))
		c.Await("the first", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
		r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
		c.Await("the newest", func(s *xdsclient.State) bool { return s.Open(eds) == 2 })
		c.Accept(eds)
		c.Accept(eds)
		c.Await("the newest", leads("a.example", "10.0.0.2"))
	})
}

func nacks(r *rig, typeURL string) (n uint64) {
	for _, count := range r.engine.Counts() {
		if count.Type == typeURL {
			n += count.NACKs
		}
	}
	return n
}
