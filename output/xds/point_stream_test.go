package xds_test

import (
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// The tests named TestPointN hold the server to point N of the checklist in
// docs/reference/xds.md. What a strict client checks of every message (points
// 9, 20, 38, 39, 43, 51, 52) is part of all of them.

const probe = "probe.example"

// newProbed is a rig that serves a service for [xdsclient.Client.Quiet] beside others.
func newProbed(t xdsclient.TB, hosts ...string) *rig {
	t.Helper()
	r := newRig(t, setup{})
	r.put(service("shop", probe))
	for _, host := range hosts {
		r.put(service("shop", host), endpoint("shop", host, "one", "10.0.0.1"))
	}
	r.dispatched() // else a client may be sent a part of them first
	r.ticks.Disconnect()
	r.ticks = nil
	return r
}

func TestPoint2_UnknownTypeHarmsNoOther(t *testing.T) {
	r := newProbed(t, "a.example")
	sotw, delta := r.sotw("sotw", "shop"), r.delta("delta", "shop")
	sotw.Send(&discoveryv3.DiscoveryRequest{TypeUrl: "type.googleapis.com/no.such.Type", ResourceNames: []string{"x"}})
	delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/no.such.Type"})
	for _, c := range []*xdsclient.Client{sotw, delta} {
		c.Subscribe(cds)
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	}
}

func TestPoint2_MissingTypeIsInvalid(t *testing.T) {
	r := newProbed(t)
	c := r.sotw("client", "shop")
	c.Send(&discoveryv3.DiscoveryRequest{})
	if err := c.AwaitEnd(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
	late := r.delta("late", "shop")
	late.Subscribe(cds)
	late.AwaitHeld(cds, clusterOf(probe))
	late.Send(&discoveryv3.DeltaDiscoveryRequest{})
	if err := late.AwaitEnd(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
}

func TestPoint3_FirstRequestNamesTheNode(t *testing.T) {
	r := newProbed(t)
	c := r.deltaWith(xdsclient.Config{Name: "nobody"})
	c.Subscribe(cds)
	if err := c.AwaitEnd(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "node.id") {
		t.Errorf("got %v", err)
	}
}

func TestPoint3_LaterNodeChangesNothing(t *testing.T) {
	r := newProbed(t)
	r.put(only(service("bank", "vault.example"), "."))
	c := r.sotw("client", "shop")
	c.Subscribe(cds)
	c.AwaitHeld(cds, clusterOf(probe))
	c.Send(&discoveryv3.DiscoveryRequest{
		TypeUrl: cds, Node: xdsclient.Node("client", "bank", "envoy"), ResponseNonce: c.Nonce(cds),
	})
	r.put(service("shop", "a.example"))
	c.AwaitHeld(cds, clustersOf("a.example", probe)...)
}

func TestPoint5_TwoStreamsOfOneNode(t *testing.T) {
	r := newProbed(t, "a.example")
	older, newer := r.delta("client", "shop"), r.delta("client", "shop")
	older.Subscribe(eds, clusterOf("a.example"))
	newer.Subscribe(eds, clusterOf("a.example"))
	newer.AwaitHeld(eds, clusterOf("a.example"))
	older.AwaitHeld(eds, clusterOf("a.example"))
	older.Disconnect()
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
	newer.Await("the new address", leads("a.example", "10.0.0.2"))
}

func TestPoint9_VersionFollowsContent(t *testing.T) {
	r := newProbed(t, "a.example")
	version := func() string {
		c := r.sotw("client", "shop")
		c.Subscribe(eds, clusterOf("a.example"))
		c.AwaitHeld(eds, clusterOf("a.example"))
		defer c.Close()
		return c.Version(eds)
	}
	first := version()
	if again := version(); first != again {
		t.Errorf("the same content has the versions %s and %s", first, again)
	}
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
	r.dispatched()
	if changed := version(); changed == first {
		t.Errorf("the version stayed %s although the content changed", changed)
	}
	r.put(endpoint("shop", "a.example", "one", "10.0.0.1"))
	r.dispatched()
	if back := version(); back != first {
		t.Errorf("the version is %s, and was %s for the same content", back, first)
	}
}

func TestPoint64_UnprimedIsRejected(t *testing.T) {
	r := newRig(t, setup{primedWithin: time.Millisecond})
	for _, c := range []*xdsclient.Client{r.sotw("sotw", "shop"), r.delta("delta", "shop")} {
		c.Subscribe(cds)
		if err := c.AwaitEnd(); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
	}
	if n := r.rejectedFor("unready"); n != 2 {
		t.Errorf("%d streams are counted as rejected because Isthmus is not ready, want 2", n)
	}
}

func TestPoint64_PrimedWhileWaiting(t *testing.T) {
	r := newRig(t, setup{primedWithin: time.Minute})
	sotw, delta := r.sotw("sotw", "shop"), r.delta("delta", "shop")
	sotw.Subscribe(cds)
	delta.Subscribe(cds)
	r.await("stream that waits", func() bool { return r.server.Waiting() == 2 })
	r.put(service("shop", "a.example"))
	sotw.AwaitHeld(cds, clusterOf("a.example"))
	delta.AwaitHeld(cds, clusterOf("a.example"))
	if n := r.server.Waiting(); n != 0 {
		t.Errorf("%d streams wait though Isthmus is ready", n)
	}
}

// A producer beside the catalog's that has nothing to say yet keeps nobody from
// what there is.
func TestAnotherProducerKeepsNobodyWaiting(t *testing.T) {
	r := newRig(t, setup{primedWithin: 10 * time.Millisecond, idle: []world.TypeSpec{{Name: "type.googleapis.com/idle"}}})
	r.put(service("shop", "a.example"))
	for _, c := range []*xdsclient.Client{r.sotw("sotw", "shop"), r.delta("delta", "shop")} {
		c.Subscribe(cds)
		c.AwaitHeld(cds, clusterOf("a.example"))
	}
}

func leads(host string, want ...string) func(*xdsclient.State) bool {
	return func(s *xdsclient.State) bool {
		got := addresses(s, clusterOf(host))
		return got != nil && strings.Join(got, " ") == strings.Join(want, " ")
	}
}
