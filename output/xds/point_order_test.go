package xds_test

import (
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// grpcOf connects a gRPC client that has asked for everything that leads to some hosts.
func grpcOf(r *rig, connect func(*rig, xdsclient.Config) *xdsclient.Client, hosts ...string) *xdsclient.Client {
	c := connect(r, xdsclient.Config{Node: xdsclient.Node("grpc", "shop", "gRPC Go")})
	listeners := make([]string, len(hosts))
	for i, host := range hosts {
		listeners[i] = host + ":80"
	}
	c.Subscribe(cds, clustersOf(hosts...)...)
	c.Subscribe(eds, clustersOf(hosts...)...)
	c.Subscribe(lds, listeners...)
	c.Subscribe(rds, clustersOf(hosts...)...)
	return c
}

func TestPoint51_NewThingsComeInOrder(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := grpcOf(r, connect, "a.example", "b.example")
		c.AwaitHeld(rds, clusterOf("a.example"))
		c.AwaitHeld(lds, "a.example:80")
		r.put(service("shop", "b.example"), endpoint("shop", "b.example", "one", "10.0.0.1"))
		c.AwaitHeld(rds, clustersOf("a.example", "b.example")...)
		c.AwaitHeld(lds, "a.example:80", "b.example:80")
		c.Read(func(s *xdsclient.State) {
			order := []int{
				s.When(cds, clusterOf("b.example")), s.When(eds, clusterOf("b.example")),
				s.When(lds, "b.example:80"), s.When(rds, clusterOf("b.example")),
			}
			if !slices.IsSorted(order) {
				t.Errorf("clusters, assignments, listeners and routes came at %v", order)
			}
		})
	})
}

func TestPoint51_RoutesWaitForTheirClusters(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := grpcOf(r, connect, "a.example", "b.example")
		c.AwaitHeld(rds, clusterOf("a.example"))
		c.AwaitHeld(lds, "a.example:80")
		c.Hold()
		r.put(service("shop", "b.example"), endpoint("shop", "b.example", "one", "10.0.0.1"))
		c.Await("the cluster", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("b.example")) == 1 })
		r.dispatched()
		c.Subscribe(rds, clusterOf(probe))
		c.Await("another route", func(s *xdsclient.State) bool { return s.Received(rds, clusterOf(probe)) == 1 })
		if n := received(c, rds, clusterOf("b.example")); n != 0 {
			t.Error("the route came before its cluster was accepted")
		}
		c.Release()
		c.AwaitHeld(rds, clustersOf("a.example", "b.example", probe)...)
	})
}

// In the state-of-the-world variant nobody can tell which cluster was at fault.
func TestPoint51_NACKedClusterHoldsBackItsOwnRouteOnly(t *testing.T) {
	r := newProbed(t)
	c := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("grpc", "shop", "gRPC Go"), NACK: nackHTTP2})
	hosts := []string{"bad.example", "good.example"}
	c.Subscribe(cds, clustersOf(hosts...)...)
	c.Subscribe(rds, clustersOf(hosts...)...)
	r.put(speaking(service("shop", "bad.example"), "HTTP2"))
	c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(cds) >= 1 })
	r.put(service("shop", "good.example"))
	c.AwaitHeld(rds, clusterOf("good.example"))
	r.put(service("shop", "bad.example"))
	c.AwaitHeld(rds, clustersOf(hosts...)...)
}

func TestPoint51_ClustersGoLast(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := grpcOf(r, connect, "a.example", "b.example")
		c.AwaitHeld(rds, clustersOf("a.example", "b.example")...)
		c.AwaitHeld(lds, "a.example:80", "b.example:80")
		c.Hold()
		r.remove(service("shop", "b.example"), endpoint("shop", "b.example", "one", "10.0.0.1"))
		c.Await("the listener's removal", func(s *xdsclient.State) bool { return s.Open(lds) == 1 })
		r.dispatched()
		if n := open(c, cds); n != 0 {
			t.Error("the cluster went before the listener's removal was accepted")
		}
		c.Release()
		c.AwaitHeld(cds, clusterOf("a.example"))
		c.AwaitHeld(lds, "a.example:80")
		c.Await("the endpoints to go", func(s *xdsclient.State) bool { return len(addresses(s, clusterOf("b.example"))) == 0 })
	})
}

// Envoy warms a cluster whenever it is sent, and waits for its assignment.
func TestPoint52_AssignmentFollowsItsCluster(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example", "b.example")
		c := connect(r, xdsclient.Config{Follow: xdsclient.FollowClusters})
		c.Subscribe(cds)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example", probe)...)
		r.put(speaking(service("shop", "a.example"), "HTTP2"))
		c.Await("the assignment after the cluster", func(s *xdsclient.State) bool {
			return s.Received(cds, clusterOf("a.example")) > 1 && s.Received(eds, clusterOf("a.example")) == 2 &&
				s.When(eds, clusterOf("a.example")) > s.When(cds, clusterOf("a.example"))
		})
		c.AwaitNone(unwarmed)
		if n := received(c, eds, clusterOf("b.example")); n != 1 {
			t.Errorf("the assignment of a cluster that did not change was sent %d times", n)
		}
	})
}

// A client that returns with what it holds may be sent a cluster before the
// server knows that it asks for the assignment as well.
func TestPoint52_AssignmentOfAClientThatReturns(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.put(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
	name := clusterOf("a.example")
	ask := func(s raw, typeURL string, held map[string]string) {
		m := &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: typeURL, InitialResourceVersions: held}
		if typeURL == eds {
			m.ResourceNamesSubscribe = []string{name}
		}
		s.say(m)
	}
	s := openRaw(t, r.dial(), adsDelta)
	ask(s, cds, nil)
	s.delta()
	ask(s, eds, nil)
	held := map[string]string{name: s.delta().GetResources()[0].GetVersion()}
	s.stop()

	s = openRaw(t, r.dial(), adsDelta)
	ask(s, cds, map[string]string{name: "as it was before"})
	if m := s.delta(); m.GetTypeUrl() != cds || len(m.GetResources()) != 1 {
		t.Fatalf("not the cluster but %v", m)
	}
	ask(s, eds, held)
	ask(s, lds, nil) // which is answered at any rate
	if m := s.delta(); m.GetTypeUrl() != eds || len(m.GetResources()) != 1 || m.GetResources()[0].GetName() != name {
		t.Errorf("not the assignment but %v", m)
	}
}

// A client that returns with a cluster and its assignment, and asks for the
// assignment first, waits for neither: it has both.
func TestPoint52_NothingIsAwaitedByAClientThatReturns(t *testing.T) {
	t.Parallel()
	r := newProbed(t, "a.example")
	c := r.delta("returns", "shop")
	for _, typeURL := range []string{eds, cds} {
		c.Subscribe(typeURL, clusterOf("a.example"))
		c.AwaitHeld(typeURL, clusterOf("a.example"))
	}
	c.Reconnect(true)
	c.Quiet(eds, clusterOf(probe))
	c.Quiet(cds, clusterOf(probe))
	c.AwaitNone(unwarmed)
}

// A cluster that has come to be resolved by its clients, before the assignment that
// it had could follow it, waits for none.
func TestPoint52_NoAssignmentOfWhatIsResolvedByNow(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t)
		c := connect(r, xdsclient.Config{Manual: true})
		c.Subscribe(eds, "*")
		c.Await("an assignment", func(s *xdsclient.State) bool { return s.Open(eds) > 0 })
		c.Subscribe(cds, "*")
		c.Accept(cds)
		r.put(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
		c.Accept(cds)
		r.put(resolving(service("shop", "a.example")))
		c.Accept(cds)
		c.Release()
		c.Quiet(eds, clusterOf(probe))
		c.AwaitNone(unwarmed)
	})
}

// Who asks for no assignment any more waits for none.
func TestPoint52_NothingIsAwaitedThatNobodyAsksFor(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t)
		c := connect(r, xdsclient.Config{Manual: true})
		c.Subscribe(eds, "*")
		c.Await("an assignment", func(s *xdsclient.State) bool { return s.Open(eds) > 0 })
		c.Subscribe(cds, "*")
		c.Accept(cds)
		r.put(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
		c.Accept(cds)
		c.Unsubscribe(eds, "*")
		c.AwaitNone(unwarmed)
	})
}

// It is not said again that there is no assignment.
func TestPoint52_ClusterWithoutAssignment(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t)
		r.put(resolving(service("shop", "a.example")))
		c := connect(r, xdsclient.Config{})
		c.Subscribe(cds)
		c.Subscribe(eds, clusterOf("a.example"))
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
		c.Quiet(eds, clusterOf(probe))
		before := responses(c, eds)
		r.put(speaking(resolving(service("shop", "a.example")), "HTTP2"))
		c.Await("the change", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("a.example")) == 2 })
		c.Quiet(eds, clusterOf(probe))
		if n := responses(c, eds) - before; n != 0 {
			t.Errorf("%d EDS responses", n)
		}
	})
}

func TestPoint53_NoEndpointsIsAnAnswer(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newRig(t, setup{})
		r.put(service("shop", "a.example"))
		c := connect(r, xdsclient.Config{Follow: xdsclient.FollowClusters})
		c.Subscribe(cds)
		c.Await("an assignment without endpoints", leads("a.example"))
	})
}

// A cluster may go while its client asks for the assignment. Silence would
// keep the client waiting.
func TestPoint53_NoServiceIsAnAnswer(t *testing.T) {
	r := newProbed(t)
	c := r.sotw("client", "shop")
	c.Subscribe(eds, clusterOf("a.example"))
	c.Await("an assignment without endpoints", leads("a.example"))
	c.Subscribe(eds, clusterOf("b.example"))
	c.Await("an assignment without endpoints", leads("b.example"))
	r.put(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
	c.Await("its endpoint", leads("a.example", "10.0.0.1"))
}

// A client that comes back with an assignment of what has gone meanwhile must
// not go on with it.
func TestPoint53_ServiceGoneWhileDisconnected(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		c := connect(r, xdsclient.Config{})
		c.Subscribe(eds, clusterOf("a.example"))
		c.AwaitHeld(eds, clusterOf("a.example"))
		c.Disconnect()
		r.remove(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
		r.dispatched()
		c.Reconnect(true)
		c.Await("no endpoints", func(s *xdsclient.State) bool { return len(addresses(s, clusterOf("a.example"))) == 0 })
	})
}

func open(c *xdsclient.Client, typeURL string) (n int) {
	c.Read(func(s *xdsclient.State) { n = s.Open(typeURL) })
	return n
}

// A listener of Envoys is of many services. One whose cluster was NACKed keeps it from
// none of the others.
func TestPoint51_NACKedClusterKeepsNoListenerOfOthersBack(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		const bad = "bad.example"
		r := newProbed(t)
		node := xdsclient.Node("sidecar~10.0.0.7~web.shop~shop.svc.cluster.local", "shop", "envoy")
		c := connect(r, xdsclient.Config{Node: node, NACK: func(r xdsclient.Resource) string {
			if r.Name == clusterOf(bad) {
				return "it is bad"
			}
			return ""
		}})
		c.Subscribe(cds)
		r.put(speaking(service("shop", bad), "TLS"))
		c.Await("the NACK", func(s *xdsclient.State) bool { return s.NACKs(cds) >= 1 })
		c.Subscribe(lds)
		c.Await("the listener", func(s *xdsclient.State) bool { return s.Received(lds, "0.0.0.0_80") > 0 })
		r.put(speaking(service("shop", "good.example"), "TLS"))
		c.Await("a chain for another service", func(s *xdsclient.State) bool { return s.Received(lds, "0.0.0.0_80") > 1 })
	})
}
