package xds_test

import (
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// An Envoy of the state of the world that comes back to the process it had its clusters
// from is sent its whole set at once, were there a source that has never been listed. What
// went meanwhile is not in the set, and its assignment is empty.
func TestWhoHadItFromHereIsAnsweredBeforeEverythingIsListed(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotw("returning", "shop")
	c.Subscribe(cds)
	c.Subscribe(eds, clusterOf("a.example"), clusterOf("b.example"))
	c.AwaitHeld(cds, clusterOf("a.example"), clusterOf("b.example"), clusterOf(probe))
	c.AwaitHeld(eds, clusterOf("a.example"), clusterOf("b.example"))
	c.Disconnect()

	r.complete = false // a source was added that cannot be listed
	r.remove(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
	r.put(service("shop", "new.example"), endpoint("shop", "new.example", "one", "10.0.0.2"))
	c.Reconnect(true)
	c.AwaitHeld(cds, clusterOf("b.example"), clusterOf("new.example"), clusterOf(probe))
	c.Await("a to have no endpoints", func(s *xdsclient.State) bool {
		a, ok := s.Get(eds, clusterOf("a.example"))
		return ok && len(a.Content.(*endpointv3.ClusterLoadAssignment).GetEndpoints()) == 0
	})
}

// A client that returns with a version from here may have an assignment from an earlier
// process, of a source that was never listed since: the version says nothing of a name that was
// never sent from here. Such an assignment is not emptied.
func TestAnAssignmentThatWasNeverSentFromHereIsNotEmptied(t *testing.T) {
	r := newProbed(t, "a.example")
	r.complete = false
	r.apply()
	r.dispatched()
	a, other := clusterOf("a.example"), clusterOf("elsewhere.example")
	c := r.sotw("returning", "shop")
	c.Subscribe(eds, a, other)
	c.AwaitHeld(eds, a)
	for n := range 2 {
		c.Disconnect()
		c.Reconnect(true)
		c.Await("the other assignment again", func(s *xdsclient.State) bool { return s.Received(eds, a) > n+1 })
	}
	c.Read(func(s *xdsclient.State) {
		if n := s.Received(eds, other); n != 0 {
			t.Errorf("the client was sent %s %d times", other, n)
		}
	})
	c.Disconnect()
}

// One that may have been served elsewhere waits, because it may have services there of the
// source that was never listed. The assignment of a service that goes meanwhile is emptied.
// Once the source was waited for long enough, it is sent its set.
func TestWhoHadItElsewhereWaitsButNotForEver(t *testing.T) {
	r := newProbed(t, "a.example")
	r.complete = false
	r.apply()
	r.dispatched()
	s := openRaw(t, r.dial(), adsSotw)
	s.say(&discoveryv3.DiscoveryRequest{TypeUrl: cds, VersionInfo: "0123456789abcdef0123456789abcdef01", Node: xdsclient.Node("moving", "shop", "envoy")})
	s.say(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: clustersOf("a.example")})
	m := s.sotw()
	if m.GetTypeUrl() != eds || weights(t, m) == 0 {
		t.Fatalf("the first response is %v; want the endpoints, and no clusters yet", m)
	}
	s.say(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: clustersOf("a.example"), ResponseNonce: m.GetNonce(), VersionInfo: m.GetVersionInfo()})

	r.remove(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.1"))
	m = s.sotw()
	if m.GetTypeUrl() != eds || weights(t, m) != 0 {
		t.Fatalf("the second response is %v; want no endpoints any more", m)
	}
	s.say(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: clustersOf("a.example"), ResponseNonce: m.GetNonce(), VersionInfo: m.GetVersionInfo()})

	r.waited = true
	r.apply()
	if m = s.sotw(); m.GetTypeUrl() != cds || len(m.GetResources()) == 0 {
		t.Fatalf("the third response is %v; want the clusters", m)
	}
}

// weights counts the endpoints of an assignment.
func weights(t *testing.T, m *discoveryv3.DiscoveryResponse) (n int) {
	t.Helper()
	for _, any := range m.GetResources() {
		var a endpointv3.ClusterLoadAssignment
		if err := any.UnmarshalTo(&a); err != nil {
			t.Fatal(err)
		}
		for _, group := range a.GetEndpoints() {
			n += len(group.GetLbEndpoints())
		}
	}
	return n
}
