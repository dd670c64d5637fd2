package xds_test

import (
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// spoiled connects a client that takes nothing of a response in which it finds
// poison, and makes it NACK the poisoned a.example together with a change of
// b.example that is fine.
func spoiled(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) (*rig, *xdsclient.Client) {
	t.Helper()
	r := newProbed(t, "a.example", "b.example")
	c := connect(r, xdsclient.Config{NACK: nackPoison, Rollback: true})
	c.Subscribe(eds, clustersOf("a.example", "b.example")...)
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	r.put(endpoint("shop", "a.example", "one", poison), endpoint("shop", "b.example", "one", "10.0.0.2"))
	c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(eds) >= 1 })
	return r, c
}

func TestPoint16_AllThatWasNACKedComesWithTheFix(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r, c := spoiled(t, connect)
		r.put(endpoint("shop", "a.example", "one", "10.0.0.3"))
		c.Await("the fix", leads("a.example", "10.0.0.3"))
		c.Await("what was NACKed with it", leads("b.example", "10.0.0.2"))
	})
}

// The fix may be that the bad resource goes.
func TestPoint16_TheFixIsADeletion(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r, c := spoiled(t, connect)
		r.remove(service("shop", "a.example"), endpoint("shop", "a.example", "one", poison))
		c.Await("what was NACKed with it", leads("b.example", "10.0.0.2"))
	})
}

// The fix may be that the client no longer wants the bad resource.
func TestPoint16_TheFixIsToAskForLess(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		_, c := spoiled(t, connect)
		c.Unsubscribe(eds, clusterOf("a.example"))
		c.Await("what was NACKed with it", leads("b.example", "10.0.0.2"))
	})
}

// The bad resource changes back to what the client has.
func TestPoint16_TheFixIsToGoBack(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r, c := spoiled(t, connect)
		r.put(endpoint("shop", "a.example", "one", "10.0.0.1"))
		c.Await("what was NACKed with it", leads("b.example", "10.0.0.2"))
		c.Await("what it was", leads("a.example", "10.0.0.1"))
	})
}

// The removal of a NACKed route cannot be sent in the state-of-the-world
// variant, but what was NACKed with it has to come again.
func TestPoint16_TheBadRouteGoes(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t)
		c := connect(r, xdsclient.Config{
			Node: xdsclient.Node("grpc", "shop", "gRPC Go"), Rollback: true,
			NACK: func(res xdsclient.Resource) string {
				if res.Name == clusterOf("bad.example") {
					return "bad"
				}
				return ""
			},
		})
		c.Subscribe(rds, clustersOf("a.example", "bad.example", probe)...)
		c.AwaitHeld(rds, clusterOf(probe))
		r.put(service("shop", "a.example"), service("shop", "bad.example"))
		c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(rds) >= 1 })
		r.remove(service("shop", "bad.example"))
		c.AwaitHeld(rds, clustersOf("a.example", probe)...)
	})
}

// A full state is NACKed, and the client asks for less: what else was new in
// it has to come again.
func TestPoint16_FullStateWithoutTheBadOne(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t)
		c := connect(r, xdsclient.Config{Rollback: true, NACK: func(res xdsclient.Resource) string {
			if res.Name == clusterOf("bad.example") {
				return "bad"
			}
			return ""
		}})
		c.Subscribe(cds, clustersOf("a.example", "bad.example", probe)...)
		c.AwaitHeld(cds, clusterOf(probe))
		r.put(service("shop", "bad.example"))
		c.Await("a NACK", func(s *xdsclient.State) bool { return s.NACKs(cds) >= 1 })
		r.put(service("shop", "a.example"))
		r.dispatched()
		c.Unsubscribe(cds, clusterOf("bad.example"))
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	})
}

// A NACK that comes after the server's patience has ended, and after the
// next response went out, counts like any other.
func TestPoint16_LateNACK(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newRig(t, setup{engine: push.Config{Patience: time.Millisecond}})
		for _, host := range []string{"a.example", "b.example", "c.example"} {
			r.put(service("shop", host), endpoint("shop", host, "one", "10.0.0.1"))
		}
		c := connect(r, xdsclient.Config{NACK: nackPoison, Rollback: true, Overlap: true})
		names := clustersOf("a.example", "b.example", "c.example")
		c.Subscribe(eds, names...)
		c.AwaitHeld(eds, names...)
		c.Hold()
		r.put(endpoint("shop", "a.example", "one", poison), endpoint("shop", "b.example", "one", "10.0.0.2"))
		c.Await("the bad one", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
		r.put(endpoint("shop", "c.example", "one", "10.0.0.2"))
		c.Await("the next", func(s *xdsclient.State) bool { return s.Open(eds) == 2 })
		c.Release()
		c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(eds) >= 1 })
		r.put(endpoint("shop", "a.example", "one", "10.0.0.3"))
		c.Await("the fix", leads("a.example", "10.0.0.3"))
		c.Await("what was NACKed with it", leads("b.example", "10.0.0.2"))
		c.Await("what was not NACKed", leads("c.example", "10.0.0.2"))
	})
}

// What a client no longer asks for when it NACKs it is none of the server's business.
func TestPoint16_NACKOfWhatIsNoLongerWanted(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{NACK: nackPoison})
		c.Subscribe(eds, clustersOf("a.example", "b.example")...)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
		c.Hold()
		r.put(endpoint("shop", "a.example", "one", poison), endpoint("shop", "b.example", "one", "10.0.0.2"))
		c.Await("a response", func(s *xdsclient.State) bool { return s.Open(eds) == 1 })
		c.Unsubscribe(eds, clusterOf("a.example"))
		c.Release()
		c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(eds) >= 1 })
		r.put(endpoint("shop", "b.example", "one", "10.0.0.3"))
		c.Await("what it still wants", leads("b.example", "10.0.0.3"))
		r.dispatched()
		c.Quiet(eds, clusterOf(probe))
	})
}

// A client that NACKs a full state may have taken a part of it, and when it
// comes back it names the version it accepted before. What it was sent first
// may meanwhile be the newest again, but it is not what the client has.
func TestPoint17_VersionSaysNothingAfterANACK(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("client", "shop", "envoy"), NACK: nackHTTP2})
	c.Subscribe(cds)
	c.AwaitHeld(cds, clustersOf("a.example", "b.example", probe)...)
	r.put(resolving(service("shop", "a.example")), speaking(service("shop", "b.example"), "HTTP2"))
	c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(cds) >= 1 })
	c.Disconnect()
	r.put(service("shop", "a.example"), service("shop", "b.example"))
	r.dispatched()
	c.Reconnect(true)
	c.Await("a.example as it was", func(s *xdsclient.State) bool {
		cluster, _ := s.Get(cds, clusterOf("a.example"))
		return cluster.WantsAssignment()
	})
}
