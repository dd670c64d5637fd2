package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func TestPoint36_FullSetEveryTime(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotw("client", "shop")
	c.Subscribe(cds)
	c.AwaitHeld(cds, clustersOf("a.example", "b.example", probe)...)
	r.put(speaking(service("shop", "a.example"), "HTTP2"))
	c.Await("the whole set", func(s *xdsclient.State) bool {
		resources, _ := s.Newest(cds)
		return s.Responses(cds) == 2 && slices.Equal(resources, clustersOf("a.example", "b.example", probe))
	})
	r.remove(service("shop", "a.example"))
	c.AwaitHeld(cds, clustersOf("b.example", probe)...)
	r.remove(service("shop", "b.example"), service("shop", probe))
	c.AwaitHeld(cds)
	c.Await("a response that is empty", func(s *xdsclient.State) bool {
		resources, _ := s.Newest(cds)
		return s.Responses(cds) >= 4 && len(resources) == 0
	})
}

func TestPoint36_FullSetOfListeners(t *testing.T) {
	r := newProbed(t, "a.example")
	c := r.sotwWith(xdsclient.Config{Node: xdsclient.Node("grpc", "shop", "gRPC Go"), Follow: xdsclient.FollowListeners})
	c.Subscribe(lds, "a.example:80", "b.example:80")
	c.AwaitHeld(eds, clusterOf("a.example"))
	r.put(service("shop", "b.example"))
	c.AwaitHeld(lds, "a.example:80", "b.example:80")
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	r.remove(service("shop", "a.example"))
	c.AwaitHeld(lds, "b.example:80")
}

func TestPoint37_AssignmentsAreSentAlone(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.sotw("client", "shop")
	c.Subscribe(eds, clustersOf("a.example", "b.example")...)
	c.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
	c.Await("the change alone", func(s *xdsclient.State) bool {
		resources, _ := s.Newest(eds)
		return s.Responses(eds) == 2 && slices.Equal(resources, clustersOf("a.example"))
	})
	r.remove(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.2"))
	c.Await("an assignment with no endpoints", leads("a.example"))
	r.put(service("shop", "a.example"), endpoint("shop", "a.example", "one", "10.0.0.3"))
	c.Await("an assignment with endpoints", leads("a.example", "10.0.0.3"))
}

// That names occur once in a response is checked of every response; here a
// client provokes the contrary.
func TestPoint38_NamesAskedForTwice(t *testing.T) {
	r := newProbed(t, "a.example")
	twice := clustersOf("a.example", "a.example")
	sotw, delta := r.sotw("sotw", "shop"), r.delta("delta", "shop")
	for _, c := range []*xdsclient.Client{sotw, delta} {
		c.Expect(eds, clusterOf("a.example"))
	}
	sotw.Send(&discoveryv3.DiscoveryRequest{TypeUrl: eds, ResourceNames: twice})
	delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: twice})
	for _, c := range []*xdsclient.Client{sotw, delta} {
		c.AwaitHeld(eds, clusterOf("a.example"))
	}
	delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesUnsubscribe: twice})
	delta.Subscribe(eds, clusterOf(probe))
	delta.Await(probe, func(s *xdsclient.State) bool { return s.Received(eds, clusterOf(probe)) == 1 })
}

func TestPoint41_LargeResponsesAreSplit(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		const services, budget = 40, 2000
		r := newRig(t, setup{engine: push.Config{Budget: budget}})
		var records []model.Record
		var names []string
		for i := range services {
			host := fmt.Sprintf("%02d.%s.example", i, strings.Repeat("x", 200))
			records = append(records, service("shop", host))
			names = append(names, clusterOf(host))
		}
		r.put(records...)
		c := connect(r, xdsclient.Config{})
		c.Subscribe(eds, names...)
		c.AwaitHeld(eds, names...)
		c.Subscribe(cds)
		c.AwaitHeld(cds, names...)
		if n := responses(c, eds); n < services*200/budget {
			t.Errorf("%d responses for %d resources of more than 200 bytes each", n, services)
		}
		r.remove(records...)
		c.AwaitHeld(cds)
	})
}

// Removals take room in a response, too.
func TestPoint41_ManyRemovalsAreSplit(t *testing.T) {
	const services, budget = 40, 2000
	r := newRig(t, setup{engine: push.Config{Budget: budget}})
	var records []model.Record
	for i := range services {
		records = append(records, service("shop", fmt.Sprintf("%02d.%s.example", i, strings.Repeat("x", 200))))
	}
	r.put(records...)
	c := r.delta("client", "shop")
	c.Subscribe(cds)
	c.Await("all", func(s *xdsclient.State) bool { return len(s.Names(cds)) == services })
	before := responses(c, cds)
	r.remove(records...)
	c.AwaitHeld(cds)
	if n := responses(c, cds) - before; n < services*200/budget {
		t.Errorf("%d responses for %d removals of more than 200 bytes each", n, services)
	}
}

func TestPoint42_FirstRequestMayBeLarge(t *testing.T) {
	const many = 20_000
	r := newProbed(t, "a.example")
	c := r.deltaWith(xdsclient.Config{Node: xdsclient.Node("client", "shop", "envoy"), Deadline: until.Patience})
	held := map[string]string{}
	for i := range many {
		name := clusterOf(fmt.Sprintf("service-%06d.with-a-%s-long-name.example", i, strings.Repeat("rather-", 26)))
		held[name] = strings.Repeat("0", 32)
		c.Claims(cds, name)
	}
	c.Expect(cds, clusterOf("a.example"))
	c.Send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: cds, InitialResourceVersions: held, ResourceNamesSubscribe: clustersOf("a.example"),
	})
	c.AwaitHeld(cds, clusterOf("a.example"))
}

// Another replica, and this one after a restart, gives the same versions.
func TestPoint43_VersionsAreThoseOfContent(t *testing.T) {
	version := func(order ...string) (resource, state string) {
		r := newProbed(t, order...)
		delta, sotw := r.delta("delta", "shop"), r.sotw("sotw", "shop")
		delta.Subscribe(cds)
		sotw.Subscribe(cds)
		delta.AwaitHeld(cds, clustersOf(probe, "a.example", "b.example")...)
		sotw.AwaitHeld(cds, clustersOf(probe, "a.example", "b.example")...)
		delta.Read(func(s *xdsclient.State) {
			held, _ := s.Get(cds, clusterOf("a.example"))
			resource = held.Version
		})
		return resource, sotw.Version(cds)
	}
	resource, state := version("a.example", "b.example")
	otherResource, otherState := version("b.example", "a.example")
	if resource != otherResource || state != otherState {
		t.Errorf("two replicas give %s and %s, and for the whole %s and %s", resource, otherResource, state, otherState)
	}
}

func TestPoint44_ResumingBringsTheDifference(t *testing.T) {
	r := newProbed(t, "same.example", "changed.example", "gone.example")
	c := r.delta("client", "shop")
	c.Subscribe(cds)
	c.Subscribe(eds, clustersOf("same.example", "changed.example", "gone.example")...)
	c.AwaitHeld(cds, clustersOf("same.example", "changed.example", "gone.example", probe)...)
	c.AwaitHeld(eds, clustersOf("same.example", "changed.example", "gone.example")...)
	c.Disconnect()
	r.put(speaking(service("shop", "changed.example"), "HTTP2"), endpoint("shop", "changed.example", "one", "10.0.0.2"))
	r.put(service("shop", "new.example"))
	r.remove(service("shop", "gone.example"))
	r.dispatched()
	c.Reconnect(true)
	c.AwaitHeld(cds, clustersOf("same.example", "changed.example", "new.example", probe)...)
	c.Await("the change", leads("changed.example", "10.0.0.2"))
	c.AwaitHeld(eds, clustersOf("same.example", "changed.example")...)
	for _, typeURL := range []string{cds, eds} {
		if n := received(c, typeURL, clusterOf("same.example")); n != 1 {
			t.Errorf("what had not changed was sent %d times", n)
		}
	}
}

// What a client has is not what it wants.
func TestPoint44_HeldIsNotSubscribed(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	c := r.delta("client", "shop")
	c.Claims(eds, clusterOf("b.example"))
	c.Expect(eds, clusterOf("a.example"))
	c.Send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: eds, InitialResourceVersions: map[string]string{clusterOf("b.example"): "1"},
		ResourceNamesSubscribe: clustersOf("a.example"),
	})
	c.AwaitHeld(eds, clusterOf("a.example"))
	r.put(endpoint("shop", "b.example", "one", "10.0.0.2"))
	r.dispatched()
	c.Quiet(eds, clusterOf(probe))
}

func TestPoint45_FirstWildcardIsAnsweredEvenIfEmpty(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newRig(t, setup{})
		r.put()
		c := connect(r, xdsclient.Config{})
		for _, typeURL := range []string{cds, lds} {
			c.Subscribe(typeURL)
			c.Await("an empty response", func(s *xdsclient.State) bool { return s.Responses(typeURL) == 1 })
		}
	})
}

func TestPoint46_AssignmentsComeWhole(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		r := newProbed(t, "a.example")
		r.put(endpoint("shop", "a.example", "two", "10.0.0.2"))
		c := connect(r, xdsclient.Config{})
		c.Subscribe(eds, clusterOf("a.example"))
		c.Await("both endpoints", leads("a.example", "10.0.0.1", "10.0.0.2"))
		r.put(endpoint("shop", "a.example", "two", "10.0.0.3"))
		c.Await("both endpoints", leads("a.example", "10.0.0.1", "10.0.0.3"))
	})
}
