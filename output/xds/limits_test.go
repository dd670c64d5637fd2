package xds_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = clusterOf(fmt.Sprintf("service-%d.some-namespace.svc.cluster.local", i))
	}
	return names
}

func TestRequestsBeyondTheLimitsAreRejected(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{Names: 10, NamesBytes: 3000, NodeBytes: 100, FieldBytes: 1000}})
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
		{"long names", adsSotw, &discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNames: []string{strings.Repeat("x", 2000), strings.Repeat("y", 2000)}}},
		{"long names subscribed", adsDelta, &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: []string{strings.Repeat("x", 3001)}}},
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

// A name that nothing can have is answered as any that nothing has, and those
// asked for with it are served.
func TestLongNamesAreAnsweredAsMissing(t *testing.T) {
	names := map[string]func(host string) string{
		cds: clusterOf, eds: clusterOf, lds: func(host string) string { return host + ":80" }, rds: clusterOf,
	}
	long := "missing" + strings.Repeat("x", 64<<10) + ".example"
	for _, agent := range []string{"envoy", "gRPC Go"} {
		for typeURL, named := range names {
			for _, method := range []string{adsSotw, adsDelta} {
				t.Run(agent+" "+typeURL+" "+method, func(t *testing.T) {
					short := answers(t, agent, method, typeURL, named("missing.example"), named(probe))
					got := answers(t, agent, method, typeURL, named(long), named(probe))
					for i := range got {
						got[i] = strings.ReplaceAll(got[i], long, "missing.example")
					}
					if diff := cmp.Diff(short, got); diff != "" {
						t.Errorf("a long name is not answered as a short one: %s", diff)
					}
				})
			}
		}
	}
}

// answers returns what a stream says of a type when it is asked for names.
// Responses are written as text, for the lengths of what is in them differ.
func answers(t *testing.T, agent, method, typeURL string, names ...string) (received []string) {
	t.Helper()
	var marks []string
	for i := range 4 {
		marks = append(marks, fmt.Sprintf("mark-%d.example", i))
	}
	r := newProbed(t, marks...)
	l := &listener{raw: openRaw(t, r.dial(), method), delta: method == adsDelta, agent: agent, typeURL: typeURL, asked: map[string][]string{}}
	l.ask(typeURL, names...)
	l.settle()
	l.ask(typeURL, names...) // whatever is said, it is not said over and over
	l.settle()
	for _, text := range l.received {
		var m proto.Message = &discoveryv3.DiscoveryResponse{}
		if l.delta {
			m = &discoveryv3.DeltaDiscoveryResponse{}
		}
		if err := proto.Unmarshal(text, m); err != nil {
			t.Fatal(err)
		}
		received = append(received, describeAnswer(m))
	}
	return received
}

// describeAnswer lists what a response brings and takes away.
func describeAnswer(m proto.Message) string {
	var list []string
	switch m := m.(type) {
	case *discoveryv3.DiscoveryResponse:
		for _, body := range m.GetResources() {
			text, _ := body.UnmarshalNew()
			list = append(list, prototext.MarshalOptions{}.Format(text))
		}
	case *discoveryv3.DeltaDiscoveryResponse:
		for _, r := range m.GetResources() {
			text, _ := r.GetResource().UnmarshalNew()
			list = append(list, r.GetName()+" "+prototext.MarshalOptions{}.Format(text))
		}
		for _, name := range m.GetRemovedResources() {
			list = append(list, "without "+name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// What long names cost is their bytes, once.
func TestLongNamesCostTheirBytes(t *testing.T) {
	const count, size = 300, 64 << 10
	r := newProbed(t)
	s := openRaw(t, r.dial(), adsDelta)
	ask := func(names ...string) {
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: cds, ResourceNamesSubscribe: names})
		for missing := 0; missing < len(names); {
			m := s.delta()
			missing += len(m.GetRemovedResources())
			s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResponseNonce: m.GetNonce()})
		}
	}
	ask("short")
	before := heap()
	for i := range count {
		ask(strings.Repeat("x", size) + strconv.Itoa(i))
	}
	if after := heap(); after > before+count*size*3/2 {
		t.Errorf("%d names of %d bytes cost %d", count, size, after-before)
	}
	for range count { // the same again are no more
		ask(strings.Repeat("x", size) + "0")
	}
}

// The reason of a NACK is kept to be shown, and not all that came with it.
func TestReasonsAreKeptShort(t *testing.T) {
	const streams, size = 30, 1_000_000
	r := newProbed(t)
	conn := r.dial()
	nack := &statuspb.Status{Message: strings.Repeat("no", size/2)}
	before := heap()
	for i := range streams {
		s := openRaw(t, conn, adsDelta)
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: xdsclient.Node(fmt.Sprint("raw", i), "shop", "envoy"), TypeUrl: cds})
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResponseNonce: s.delta().GetNonce(), ErrorDetail: nack})
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		s.delta()
	}
	if after := heap(); after > before+streams*size/4 {
		t.Errorf("%d reasons of %d bytes cost %d", streams, size, after-before)
	}
	for _, shown := range r.engine.Clients() {
		for _, typ := range shown.Types {
			if n := len(typ.Reason); typ.Type == cds && (n == 0 || n > 2048) {
				t.Errorf("%d bytes of a reason are kept", n)
			}
		}
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

func TestBytesOfNamesAreCountedOverRequests(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{NamesBytes: 1000}})
	r.put(service("shop", probe))
	s := openRaw(t, r.dial(), adsDelta)
	for range 5 { // the same again are no more
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: []string{strings.Repeat("x", 600)}})
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: s.delta().GetNonce()})
	}
	s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: []string{strings.Repeat("y", 600)}})
	if err := s.end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "1000 bytes") {
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
	r := newSecured(t, setup{limits: xds.Limits{Limits: streams.Limits{StreamsPerClient: 2}}}, true)
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

func TestPoint70_RushOfStreamsIsRejected(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{Limits: streams.Limits{NewStreams: streams.Rate{PerSecond: 0.01, Burst: 2}, NewStreamsPerClient: streams.Rate{PerSecond: 1, Burst: 10}}}})
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

// A client that NACKs everything is kept waiting, and is not sent away.
func TestClientThatNACKsEverythingIsSlowed(t *testing.T) {
	const burst = 3
	r := newRig(t, setup{limits: xds.Limits{Limits: streams.Limits{NACKs: streams.Rate{PerSecond: 0.01, Burst: burst}}}})
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
		if n := shown.Types[0].NACKs; n > burst {
			t.Errorf("%d NACKs were taken in at once, want %d", n, burst)
		}
		if n := len(shown.Types[0].Reason); n > 5000 {
			t.Errorf("%d bytes of a reason are kept", n)
		}
	}
	reader.AwaitHeld(eds, clusterOf(probe))
}

// What the streams of one identity ask for is bounded in bytes together, and so
// is what all of them do; who asks for too much gets an error, and others are served.
func TestNamesOfOneIdentityAreBudgeted(t *testing.T) {
	const names, size = 100, 100
	const view = 32 << 10 // which all of them share
	budget := push.Holdings{Each: names * 2 * (size + 100), Total: names*3*(size+100) + view}
	r := newSecured(t, setup{engine: push.Config{Holdings: budget}}, true)
	ask := func(account string) raw {
		config := r.ca.Client(r.ca.Issue(account, "spiffe://cluster.local/ns/shop/sa/"+account))
		s := openRaw(t, r.over(config), adsDelta)
		list := make([]string, names)
		for i := range list {
			list[i] = fmt.Sprintf("%0*d", size, i)
		}
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: list})
		return s
	}
	for range 2 {
		ask("one").delta()
	}
	if err := ask("one").end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "sa/one") {
		t.Errorf("a third stream of one identity: %v", err)
	}
	ask("other").delta()
	if err := ask("third").end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "all clients") {
		t.Errorf("a stream beyond the budget of all: %v", err)
	}
}
