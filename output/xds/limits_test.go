package xds_test

import (
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/xds"
)

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = clusterOf(fmt.Sprintf("service-%d.some-namespace.svc.cluster.local", i))
	}
	return names
}

func TestRequestsBeyondTheLimitsAreRefused(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{Names: 10, NameBytes: 100, FieldBytes: 1000}})
	r.put(service("shop", probe))
	held := map[string]string{}
	for _, name := range numbered(11) {
		held[name] = "1"
	}
	fat := &corev3.Node{Id: "fat", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"X": structpb.NewStringValue(strings.Repeat("x", 1000))}}}
	tests := []struct {
		name, method string
		m            proto.Message
	}{
		{"names", adsSotw, &discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNames: numbered(11)}},
		{"subscribed", adsDelta, &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: numbered(11)}},
		{"unsubscribed", adsDelta, &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesUnsubscribe: numbered(11)}},
		{"held", adsDelta, &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, InitialResourceVersions: held}},
		{"a long name", adsSotw, &discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNames: []string{strings.Repeat("x", 200)}}},
		{"a fat node", adsDelta, &discoveryv3.DeltaDiscoveryRequest{Node: fat, TypeUrl: eds}},
		{"a long id", adsDelta, &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: strings.Repeat("x", 101)}, TypeUrl: eds}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := openRaw(t, r.dial(), test.method)
			s.say(test.m)
			if err := s.end(); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNamesOfAStreamAreCountedOverRequests(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{Names: 10}})
	r.put(service("shop", probe))
	s := openRaw(t, r.dial(), adsDelta)
	for range 3 { // the same again are no more
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: numbered(10)})
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: s.delta().GetNonce()})
	}
	s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: []string{"one more"}})
	if err := s.end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "10 names") {
		t.Errorf("got %v", err)
	}
}

// The limits are not for honest clients: this is a large one that comes back.
func TestPoint42_BigClientResumes(t *testing.T) {
	const clusters = 28_000
	r := newProbed(t)
	names := numbered(clusters)
	held := make(map[string]string, clusters)
	for _, name := range names {
		held[name] = strings.Repeat("0", 32)
	}
	s := openRaw(t, r.dial(), adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: names, InitialResourceVersions: held})
	for answered := 0; answered < clusters; {
		m := s.delta()
		answered += len(m.GetResources()) + len(m.GetRemovedResources())
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: m.GetNonce()})
	}
}

func TestStreamsOfOneClientAreLimited(t *testing.T) {
	r := newSecured(t, setup{limits: xds.Limits{StreamsPerClient: 2}}, true)
	config := r.ca.Client(r.ca.Issue("client", inShop))
	ask := func(s raw) { s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds}) }
	first, second := openRaw(t, r.over(config), adsSotw), openRaw(t, r.over(config), adsSotw)
	for _, s := range []raw{first, second} {
		ask(s)
		s.sotw()
	}
	third := openRaw(t, r.over(config), adsSotw)
	ask(third)
	if err := third.end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), inShop) {
		t.Errorf("got %v", err)
	}
	other := openRaw(t, r.over(r.ca.Client(r.ca.Issue("other", "spiffe://cluster.local/ns/shop/sa/other"))), adsSotw)
	ask(other)
	other.sotw()
	_ = first.wire.CloseSend()
	_ = first.end()
	again := openRaw(t, r.over(config), adsSotw)
	ask(again)
	again.sotw()
}

func TestPoint70_RushOfStreamsIsRefused(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{NewStreams: xds.Rate{PerSecond: 0.01, Burst: 2}}})
	r.put(service("shop", probe))
	for range 2 {
		s := openRaw(t, r.dial(), adsSotw)
		s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds})
		s.sotw()
	}
	s := openRaw(t, r.dial(), adsSotw)
	s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds})
	if err := s.end(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// A client that refuses everything is kept waiting, and is not sent away.
func TestClientThatRefusesEverythingIsSlowed(t *testing.T) {
	const burst = 3
	r := newRig(t, setup{limits: xds.Limits{Refusals: xds.Rate{PerSecond: 0.01, Burst: burst}}})
	r.put(service("shop", probe), endpoint("shop", probe, "one", "10.0.0.1"))
	s := openRaw(t, r.dial(), adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
	for i := range burst + 1 {
		s.say(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: eds, ResponseNonce: s.delta().GetNonce(), ErrorDetail: &statuspb.Status{Message: strings.Repeat("no", 10_000)},
		})
		r.put(endpoint("shop", probe, "one", fmt.Sprintf("10.0.1.%d", i)))
	}
	reader := r.delta("reader", "shop")
	reader.Subscribe(eds, clusterOf(probe))
	r.dispatched()
	for _, shown := range r.engine.Clients() {
		if shown.ID != "raw" {
			continue
		}
		if n := shown.Types[0].Refusals; n > burst {
			t.Errorf("%d refusals were taken in at once, want %d", n, burst)
		}
		if n := len(shown.Types[0].Reason); n > 5000 {
			t.Errorf("%d bytes of a reason are kept", n)
		}
	}
	reader.AwaitHeld(eds, clusterOf(probe))
}
