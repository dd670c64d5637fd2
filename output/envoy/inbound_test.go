package envoy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// behind is a service of the namespace a with one endpoint.
type behind struct {
	name     string
	ports    []model.Port
	endpoint model.Endpoint
	exportTo string
	created  int64
	resolves model.Resolution
}

func (b behind) events() []model.Event {
	key := model.Key{Source: "first", Namespace: "a", Name: b.name}
	if b.resolves == "" {
		b.resolves = model.ResolutionStatic
	}
	if b.endpoint.Address == "" {
		b.endpoint.Address = "10.0.0.1"
	}
	s := model.Service{
		Hosts: model.ListOf(b.name + ".example"), Ports: model.ListOf(b.ports...), Resolution: b.resolves,
	}
	if b.exportTo != "" {
		s.ExportTo = model.ListOf(b.exportTo)
	}
	s.Created = time.Unix(1e9+b.created, 0)
	at := key
	at.Name += "/1"
	return []model.Event{
		model.Upsert{Record: model.Record{Ref: model.Ref{Kind: model.KindService, Key: key}, Spec: s}},
		model.Upsert{Record: owned(model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: at}, Spec: b.endpoint})},
	}
}

func worldBehind(services ...behind) *World {
	var events []model.Event
	for _, b := range services {
		events = append(events, b.events()...)
	}
	return worldOf([]string{"first"}, events...)
}

// oldRule is a world in which services without addresses have the connections to addresses of
// nobody.
func oldRule(w *World) *World {
	s := policy.New()
	s.Unaddressed = policy.AllUnaddressed
	return worldUnder(s.Prepare(), w.snapshot, true, w.root, nil)
}

// sidecarAt is the sidecar of a workload of the namespace a.
func sidecarAt(addresses ...string) world.Client {
	return world.Client{Kind: reach.KindEnvoy, Namespace: "a", Addresses: addresses, Proxy: world.Proxy{Role: "sidecar"}}
}

// taken is what a client's inbound listener does with connections, a line for each
// chain, and the clusters of its workload.
func taken(t testing.TB, w *World, c world.Client) (chains, clusters []string) {
	t.Helper()
	m := &listenerv3.Listener{}
	if readInto(t, w, ListenerType, c, names.VirtualInbound, m) {
		for _, chain := range append(m.GetFilterChains(), m.GetDefaultFilterChain()) {
			match := chain.GetFilterChainMatch()
			leads := reachedThrough(&listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{chain}}, wire.ClusterURL)
			kind, _ := strings.CutPrefix(chain.GetFilters()[0].GetName(), "envoy.filters.network.")
			chains = append(chains, strings.Join(strings.Fields(fmt.Sprint(
				chain.GetName(), " ", match.GetDestinationPort().GetValue(), " ", match.GetTransportProtocol(), " ",
				strings.Join(match.GetApplicationProtocols(), "+"), " ", kind, " ", strings.Join(leads, "+"),
			)), " "))
		}
	}
	for name := range w.Names(w.View(ClusterType, c), ClusterType) {
		if strings.HasPrefix(name, "inbound|") || name == names.InboundPassthrough {
			clusters = append(clusters, name)
		}
	}
	return chains, clusters
}

func readInto(t testing.TB, w *World, r world.Row, c world.Client, name string, into proto.Message) bool {
	t.Helper()
	subject, ok := w.Find(w.View(r, c), r, name)
	if !ok {
		return false
	}
	var body anypb.Any
	if err := proto.Unmarshal(subject.Encode().Joined().Body, &body); err != nil {
		t.Fatal(err)
	}
	if err := body.UnmarshalTo(into); err != nil {
		t.Fatal(err)
	}
	if err := validatedAs(into); err != nil {
		t.Errorf("%s is not valid: %v", name, err)
	}
	return true
}

var (
	always = []string{
		"virtualInbound-blackhole 15006 tcp_proxy BlackHoleCluster",
		"virtualInbound-catchall-http 0 raw_buffer http/1.0+http/1.1+h2c http_connection_manager InboundPassthroughCluster",
	}
	others = "virtualInbound 0 tcp_proxy InboundPassthroughCluster"
)

// A sidecar takes connections to its workload's own ports, whichever services have
// them, as their protocols say.
func TestSidecarTakesThePortsOfItsWorkload(t *testing.T) {
	t.Parallel()
	http := []model.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}
	raw := []model.Port{{Number: 3307, Name: "db", Protocol: "TCP"}, {Number: 443, Name: "tls", Protocol: "TLS"}}
	unknown := []model.Port{{Number: 7070, Name: "any"}, {Number: 3306, Name: "db"}}
	on80 := []string{"0.0.0.0_80 80 raw_buffer http_connection_manager inbound|80||", "0.0.0.0_80 80 tls tcp_proxy inbound|80||"}
	tests := []struct {
		name     string
		services []behind
		client   world.Client
		chains   []string // beside those that every one has
		ports    []int
	}{
		{"nothing", nil, sidecarAt("10.0.0.1"), nil, nil},
		{"requests", []behind{{name: "s", ports: http}}, sidecarAt("10.0.0.1"), on80, []int{80}},
		{"another workload", []behind{{name: "s", ports: http}}, sidecarAt("10.0.0.2"), nil, nil},
		{"two addresses", []behind{{name: "s", ports: http}}, sidecarAt("fd00::1", "10.0.0.1"), on80, []int{80}},
		{
			"connections",
			[]behind{{name: "s", ports: raw}},
			sidecarAt("10.0.0.1"),
			[]string{"0.0.0.0_443 443 tcp_proxy inbound|443||", "0.0.0.0_3307 3307 tcp_proxy inbound|3307||"},
			[]int{443, 3307},
		},
		{
			"what is not known",
			[]behind{{name: "s", ports: unknown}},
			sidecarAt("10.0.0.1"),
			[]string{
				"0.0.0.0_3306 3306 tcp_proxy inbound|3306||",
				"0.0.0.0_7070 7070 raw_buffer http/1.0+http/1.1+h2c http_connection_manager inbound|7070||",
				"0.0.0.0_7070 7070 raw_buffer tcp_proxy inbound|7070||",
				"0.0.0.0_7070 7070 tls tcp_proxy inbound|7070||",
			},
			[]int{3306, 7070},
		},
		{
			"two services",
			[]behind{{name: "s", ports: http}, {name: "t", ports: raw[:1]}},
			sidecarAt("10.0.0.1"),
			append(slices.Clone(on80), "0.0.0.0_3307 3307 tcp_proxy inbound|3307||"),
			[]int{80, 3307},
		},
		{
			"the oldest says what a port is", []behind{
				{name: "s", ports: []model.Port{{Number: 90, TargetPort: 80, Protocol: "TCP", Name: "raw"}}, created: 2},
				{name: "t", ports: http, created: 1},
			}, sidecarAt("10.0.0.1"), on80, []int{80},
		},
		{
			"and the first port of one service", []behind{{name: "s", ports: []model.Port{
				{Number: 8080, TargetPort: 80, Name: "http", Protocol: "HTTP"}, {Number: 9090, TargetPort: 80, Name: "raw", Protocol: "TCP"},
			}}}, sidecarAt("10.0.0.1"), on80, []int{80},
		},
		{
			"the workload's own port", []behind{{
				name: "s", ports: []model.Port{{Number: 8080, TargetPort: 8081, Name: "http", Protocol: "HTTP"}},
				endpoint: model.Endpoint{Ports: model.MapOf(map[string]uint32{"http": 80})},
			}}, sidecarAt("10.0.0.1"), on80, []int{80},
		},
		{"one that is not healthy", []behind{{name: "s", ports: http, endpoint: model.Endpoint{Health: model.Unhealthy}}}, sidecarAt("10.0.0.1"), on80, []int{80}},
		{"services for nobody", []behind{{name: "s", ports: http, exportTo: "~"}}, sidecarAt("10.0.0.1"), on80, []int{80}},
		{"no port of Envoy's own", []behind{{name: "s", ports: []model.Port{
			{Number: 15001, Name: "a", Protocol: "HTTP"}, {Number: 80, TargetPort: 15006, Name: "b", Protocol: "TCP"},
		}}}, sidecarAt("10.0.0.1"), nil, nil},
		{"no datagrams", []behind{{name: "s", ports: []model.Port{{Number: 80, Name: "dns", Protocol: "UDP"}}}}, sidecarAt("10.0.0.1"), nil, nil},
		{"no names", []behind{{name: "s", ports: http, resolves: model.ResolutionDNS}}, sidecarAt("10.0.0.1"), nil, nil},
		{"no sockets", []behind{{name: "s", ports: http, endpoint: model.Endpoint{Address: "unix:///run/s"}}}, sidecarAt("10.0.0.1"), nil, nil},
		{"another network", []behind{{name: "s", ports: http, endpoint: model.Endpoint{Network: "n"}}}, sidecarAt("10.0.0.1"), nil, nil},
		{"the same network", []behind{{name: "s", ports: http, endpoint: model.Endpoint{Network: "n"}}}, in(sidecarAt("10.0.0.1"), "a", "n"), on80, []int{80}},
		{"another namespace", []behind{{name: "s", ports: http}}, in(sidecarAt("10.0.0.1"), "b", ""), nil, nil},
		{"no namespace", []behind{{name: "s", ports: http}}, in(sidecarAt("10.0.0.1"), "", ""), nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			chains, clusters := taken(t, worldBehind(test.services...), test.client)
			want := append(slices.Concat(always, test.chains), others)
			if diff := gocmp.Diff(want, chains); diff != "" {
				t.Errorf("it takes (- want, + got):\n%s", diff)
			}
			to := []string{names.InboundPassthrough}
			for _, n := range test.ports {
				to = append(to, fmt.Sprintf("inbound|%d||", n))
			}
			if diff := gocmp.Diff(to, clusters); diff != "" {
				t.Errorf("its clusters are (- want, + got):\n%s", diff)
			}
		})
	}
}

func in(c world.Client, namespace, network string) world.Client {
	c.Namespace, c.Network = namespace, network
	return c
}

// Only a sidecar with redirected connections is sent the resources of its
// workload: any other would bind a port of another process.
func TestOnlyInterceptingSidecarsTakeConnections(t *testing.T) {
	t.Parallel()
	w := worldBehind(behind{name: "s", ports: []model.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}})
	explicit := sidecarAt("10.0.0.1")
	explicit.Proxy.Interception, explicit.Proxy.Outbound = "NONE", world.AllPorts()
	router, nothing, library := sidecarAt("10.0.0.1"), sidecarAt("10.0.0.1"), sidecarAt("10.0.0.1")
	router.Proxy.Role, nothing.Proxy.Role, library.Kind = "router", "", reach.KindGRPC
	for _, c := range []world.Client{explicit, router, nothing, library} {
		if chains, clusters := taken(t, w, c); chains != nil || clusters != nil {
			t.Errorf("%+v takes %v and has %v", c, chains, clusters)
		}
	}
}

// Where Envoy listens, and from which address it calls its workload, follows from how
// it is reached.
func TestInboundFollowsTheWayConnectionsAreRedirected(t *testing.T) {
	t.Parallel()
	w := worldBehind(behind{name: "s", ports: []model.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}, endpoint: model.Endpoint{Address: "FD00::1"}})
	for _, test := range []struct {
		address, mode   string
		listens, source string
		transparent     bool
	}{
		{"10.0.0.1", "REDIRECT", "0.0.0.0", "127.0.0.6", false},
		{"10.0.0.1", "TPROXY", "0.0.0.0", "127.0.0.6", true},
		{"fd00::1", "", "::", "::6", false},
		{"fd00::1", "TPROXY", "::", "::6", true},
	} {
		c := sidecarAt(test.address)
		c.Proxy.Interception = test.mode
		l, to := &listenerv3.Listener{}, &clusterv3.Cluster{}
		if !readInto(t, w, ListenerType, c, names.VirtualInbound, l) || !readInto(t, w, ClusterType, c, names.InboundPassthrough, to) {
			t.Fatalf("%s: no listener or no cluster", test.address)
		}
		if at := l.GetAddress().GetSocketAddress(); at.GetAddress() != test.listens || at.GetPortValue() != 15006 {
			t.Errorf("%s: it listens at %v", test.address, at)
		}
		var filters []string
		for _, f := range l.GetListenerFilters() {
			filters = append(filters, f.GetName())
		}
		if source := slices.Contains(filters, "envoy.filters.listener.original_src"); filters[0] != "envoy.filters.listener.original_dst" || source != test.transparent || l.GetTransparent().GetValue() != test.transparent {
			t.Errorf("%s %s: its filters are %v, transparent %v", test.address, test.mode, filters, l.GetTransparent())
		}
		if got := to.GetUpstreamBindConfig().GetSourceAddress().GetAddress(); got != test.source {
			t.Errorf("%s: it calls from %s", test.address, got)
		}
	}
}

// Envoy rejects a listener with two chains of one match, and drains every connection if
// anything but a chain changes: whatever a workload serves, no two matches are equal, and
// a port that comes is in the chains alone.
func TestAnyPortsMakeAListener(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		kinds := rapid.MapOf(rapid.Uint32Range(1, names.HighestPort).Filter(func(n uint32) bool { return n != policy.InboundPort }), rapid.SampledFrom([]reach.Traffic{reach.HTTP, reach.TLS, reach.TCP, reach.Detected})).Draw(rt, "ports")
		listener := func() *listenerv3.Listener {
			var body anypb.Any
			m := &listenerv3.Listener{}
			l := inboundListener{View{proxy: node.Proxy{Role: node.Sidecar}, inbound: inbound{taken: true, ports: writePorts(plaintext(kinds))}}}
			if err := proto.Unmarshal(l.Encode().Joined().Body, &body); err != nil {
				rt.Fatal(err)
			}
			if err := body.UnmarshalTo(m); err != nil {
				rt.Fatal(err)
			}
			return m
		}
		before := listener()
		if err := validatedAs(before); err != nil {
			rt.Fatal(err)
		}
		seen, ports := map[string]bool{}, map[uint32]bool{}
		for _, c := range before.GetFilterChains() {
			match, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.GetFilterChainMatch())
			if err != nil || seen[string(match)] {
				rt.Fatalf("two chains match %v (%v)", c.GetFilterChainMatch(), err)
			}
			seen[string(match)] = true
			ports[c.GetFilterChainMatch().GetDestinationPort().GetValue()] = true
		}
		if len(ports) != len(kinds)+2 { // with that of the listener itself, and no port
			rt.Fatalf("%d ports are taken, not %d", len(ports)-2, len(kinds))
		}
		kinds[rapid.Uint32Range(1, names.HighestPort).Filter(func(n uint32) bool { _, ok := kinds[n]; return !ok && n != policy.InboundPort }).Draw(rt, "new port")] = rapid.SampledFrom([]reach.Traffic{reach.HTTP, reach.TLS, reach.TCP, reach.Detected}).Draw(rt, "its traffic")
		after := listener()
		before.FilterChains, after.FilterChains = nil, nil
		if !proto.Equal(before, after) {
			rt.Fatalf("a port that comes changes more than chains: %v became %v", before, after)
		}
	})
}

// validatedAs checks what Envoy checks first, in a resource and in its filters.
func validatedAs(m proto.Message) error {
	packed := []*anypb.Any{}
	if l, ok := m.(*listenerv3.Listener); ok {
		for _, f := range l.GetListenerFilters() {
			packed = append(packed, f.GetTypedConfig())
		}
		for _, c := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
			for _, f := range c.GetFilters() {
				packed = append(packed, f.GetTypedConfig())
			}
		}
	}
	problems := []error{m.(interface{ ValidateAll() error }).ValidateAll()}
	for _, p := range packed {
		inner, err := p.UnmarshalNew()
		if err == nil {
			err = inner.(interface{ ValidateAll() error }).ValidateAll()
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
