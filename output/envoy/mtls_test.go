package envoy

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// plaintext are ports without mutual TLS.
func plaintext(kinds map[uint32]reach.Traffic) map[uint32]carried {
	ports := map[uint32]carried{}
	for number, kind := range kinds {
		ports[number] = carried{kind: kind}
	}
	return ports
}

// meshLabels are the labels of an endpoint behind a sidecar.
var meshLabels = model.MapOf(map[string]string{"security.istio.io/tlsMode": "istio"})

// mutualWorld is a world under modes of mutual TLS.
func mutualWorld(m policy.MTLS, events ...model.Event) *World {
	builder := catalog.NewBuilder([]string{"first"})
	builder.Apply(1, events)
	settings := policy.New()
	settings.MTLS = m
	return worldUnder(settings.Prepare(), builder.Snapshot(), true, "istio-system", nil)
}

// provenAt is a sidecar of the namespace a with a certificate.
func provenAt(addresses ...string) world.Client {
	c := sidecarAt(addresses...)
	c.Account = "spiffe://cluster.local/ns/a/sa/web"
	return c
}

// arrival is the first bytes of a caller of a workload, as an Envoy's inspectors find it.
type arrival struct {
	transport string
	offers    []string
}

var arrivals = map[string]arrival{
	"plaintext":           {"raw_buffer", nil},
	"requests":            {"raw_buffer", []string{"http/1.1"}},
	"an application's":    {"tls", []string{"h2", "http/1.1"}},
	"silent TLS":          {"tls", nil},
	"mesh":                {"tls", []string{"istio"}},
	"mesh, HTTP/2":        {"tls", []string{"istio", "h2"}},
	"requests by Istio":   {"tls", []string{"istio-http/1.1", "istio", "http/1.1"}},
	"connection by Istio": {"tls", []string{"istio-peer-exchange", "istio"}},
}

// outcome is the outcome of a connection: it ends, or goes to the workload, or does so after
// mutual TLS.
func (a arrival) outcome(l *listenerv3.Listener, port uint32) string {
	c := chosenChain(l, port, a)
	if c == nil {
		return "rejected"
	}
	clusters := reachedThrough(&listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{c}}, "type.googleapis.com/envoy.config.cluster.v3.Cluster")
	if slices.Contains(clusters, names.BlackHole) {
		return "rejected"
	}
	if c.GetTransportSocket() == nil {
		return "as it is"
	}
	return "mutual"
}

// chosenChain chooses a chain as Envoy does: by port, then transport, then protocol, and never
// back.
func chosenChain(l *listenerv3.Listener, port uint32, a arrival) *listenerv3.FilterChain {
	narrow := func(list []*listenerv3.FilterChain, exact, open func(*listenerv3.FilterChainMatch) bool) []*listenerv3.FilterChain {
		some := slices.DeleteFunc(slices.Clone(list), func(c *listenerv3.FilterChain) bool { return !exact(c.GetFilterChainMatch()) })
		if len(some) > 0 {
			return some
		}
		return slices.DeleteFunc(slices.Clone(list), func(c *listenerv3.FilterChain) bool { return !open(c.GetFilterChainMatch()) })
	}
	list := narrow(l.GetFilterChains(),
		func(m *listenerv3.FilterChainMatch) bool { return m.GetDestinationPort().GetValue() == port },
		func(m *listenerv3.FilterChainMatch) bool { return m.GetDestinationPort() == nil })
	list = narrow(list,
		func(m *listenerv3.FilterChainMatch) bool { return m.GetTransportProtocol() == a.transport },
		func(m *listenerv3.FilterChainMatch) bool { return m.GetTransportProtocol() == "" })
	for _, offered := range a.offers {
		for _, c := range list {
			if slices.Contains(c.GetFilterChainMatch().GetApplicationProtocols(), offered) {
				return c
			}
		}
	}
	for _, c := range list {
		if len(c.GetFilterChainMatch().GetApplicationProtocols()) == 0 {
			return c
		}
	}
	return l.GetDefaultFilterChain()
}

// expected is the outcome by a mode.
func (a arrival) expected(mode string) string {
	mesh := slices.ContainsFunc(a.offers, func(p string) bool { return strings.HasPrefix(p, "istio") })
	switch {
	case mode == policy.DisableMTLS, mode == policy.PermissiveMTLS && !mesh:
		return "as it is"
	case mode == policy.StrictMTLS && a.transport != "tls":
		return "rejected"
	default:
		return "mutual"
	}
}

func drawMTLS(t *rapid.T) policy.MTLS {
	modes := rapid.SampledFrom([]string{policy.DisableMTLS, policy.PermissiveMTLS, policy.StrictMTLS})
	m := policy.MTLS{Mode: modes.Draw(t, "mode"), Namespaces: rapid.MapOf(rapid.SampledFrom([]string{"a", "b"}), modes).Draw(t, "namespaces")}
	for port, mode := range rapid.MapOf(rapid.SampledFrom([]int{80, 81, 3306, 9000}), modes).Draw(t, "ports of a") {
		m.Ports = append(m.Ports, policy.MTLSPort{Namespace: "a", Port: port, Mode: mode})
	}
	return m
}

// modeOf is the mode of a port, by the plain rule.
func modeOf(m policy.MTLS, namespace string, port int) string {
	for _, p := range m.Ports {
		if p.Namespace == namespace && p.Port == port {
			return p.Mode
		}
	}
	if mode, named := m.Namespaces[namespace]; named {
		return mode
	}
	return m.Mode
}

// Whatever the modes, a connection to a workload goes on, is rejected, or needs a certificate,
// as the mode of its port demands. No two chains have the same match.
func TestConnectionsToAWorkloadFollowTheModeOfThePort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := drawMTLS(rt)
		var served []model.Port
		for number, protocol := range rapid.MapOf(rapid.SampledFrom([]uint32{80, 81, 3306, 9000, 7000}), rapid.SampledFrom([]string{"HTTP", "TCP", "TLS", ""})).Draw(rt, "served") {
			served = append(served, model.Port{Number: number, Name: "p" + names.PortRoutes(number), Protocol: protocol})
		}
		c := provenAt("10.0.0.1")
		if rapid.Bool().Draw(rt, "unproven") {
			c.Account = ""
		}
		var events []model.Event
		if len(served) > 0 {
			events = behind{name: "s", ports: served}.events()
		}
		w := mutualWorld(m, events...)
		l := &listenerv3.Listener{}
		if !readInto(t, w, ListenerType, c, names.VirtualInbound, l) {
			rt.Fatal("there is no listener")
		}
		checkMatches(rt, l)
		for _, port := range []uint32{80, 81, 3306, 9000, 7000, 7001} {
			mode := modeOf(m, "a", int(port))
			if c.Account == "" {
				mode = policy.DisableMTLS
			}
			if quietAt(l, port) != (mode == policy.DisableMTLS && slices.Contains(reach.ServerFirstPorts[:], port)) {
				rt.Errorf("port %d in mode %s: nothing is read: %t", port, mode, quietAt(l, port))
			}
			for name, a := range arrivals {
				if got, want := a.outcome(l, port), a.expected(mode); got != want {
					rt.Errorf("%s at port %d in mode %s: %s, want %s", name, port, mode, got, want)
				}
			}
		}
	})
}

// quietAt reports whether nothing is read of connections to a port.
func quietAt(l *listenerv3.Listener, port uint32) bool {
	for _, f := range l.GetListenerFilters() {
		rules := f.GetFilterDisabled().GetOrMatch().GetRules()
		if one := f.GetFilterDisabled(); one != nil && rules == nil {
			rules = append(rules, one)
		}
		for _, r := range rules {
			if of := r.GetDestinationPortRange(); uint32(of.GetStart()) <= port && port < uint32(of.GetEnd()) { //nolint:gosec // ports
				return true
			}
		}
	}
	return false
}

func checkMatches(t interface{ Errorf(string, ...any) }, l *listenerv3.Listener) {
	seen := map[string]bool{}
	for _, c := range l.GetFilterChains() {
		match := c.GetFilterChainMatch()
		protocols := match.GetApplicationProtocols()
		if len(protocols) == 0 {
			protocols = []string{""}
		}
		for _, protocol := range protocols { // Envoy compares each of them
			one, _ := proto.Clone(match).(*listenerv3.FilterChainMatch)
			one.ApplicationProtocols = []string{protocol}
			key, err := proto.MarshalOptions{Deterministic: true}.Marshal(one)
			if err != nil || seen[string(key)] {
				t.Errorf("two chains match %v (%v)", one, err)
			}
			seen[string(key)] = true
		}
	}
}

// A change from PERMISSIVE to STRICT keeps every chain of mutual TLS as it is, so it drains
// connections of plaintext alone. So does a change of nothing but chains.
func TestStrictModeKeepsTheConnectionsOfMutualTLS(t *testing.T) {
	t.Parallel()
	events := behind{name: "s", ports: []model.Port{{Number: 80, Name: "h", Protocol: "HTTP"}, {Number: 81, Name: "t", Protocol: "TCP"}, {Number: 82, Name: "any"}}}.events()
	listener := func(mode string) *listenerv3.Listener {
		l := &listenerv3.Listener{}
		readInto(t, mutualWorld(policy.MTLS{Mode: mode}, events...), ListenerType, provenAt("10.0.0.1"), names.VirtualInbound, l)
		return l
	}
	permissive, strict := listener(policy.PermissiveMTLS), listener(policy.StrictMTLS)
	kept := 0
	for _, c := range permissive.GetFilterChains() {
		if c.GetTransportSocket() == nil {
			continue
		}
		kept++
		if !slices.ContainsFunc(strict.GetFilterChains(), func(o *listenerv3.FilterChain) bool { return proto.Equal(c, o) }) {
			t.Errorf("STRICT has no chain %v", c.GetFilterChainMatch())
		}
	}
	for _, l := range []*listenerv3.Listener{permissive, strict} {
		l.FilterChains, l.DefaultFilterChain = nil, nil
	}
	if kept != 6 || !proto.Equal(permissive, strict) {
		t.Errorf("%d chains are kept, and %v became %v", kept, permissive, strict)
	}
}

// A caller must have a certificate of the trust domain, from the authorities of Isthmus.
func TestWorkloadsDemandACertificateOfTheTrustDomain(t *testing.T) {
	t.Parallel()
	c := provenAt("10.0.0.1")
	c.Proxy.Interception, c.Proxy.Binds = "NONE", []world.Bind{bindAt("10.0.0.1:80", "127.0.0.1:80"), bindAt("10.0.0.1:81", "127.0.0.1:81")}
	w := mutualWorld(policy.MTLS{Mode: policy.StrictMTLS, Ports: []policy.MTLSPort{{Namespace: "a", Port: 81, Mode: policy.PermissiveMTLS}}}, behind{
		name: "s", ports: []model.Port{{Number: 80, Name: "h", Protocol: "HTTP"}, {Number: 81, Name: "t", Protocol: "TCP"}},
	}.events()...)
	for name, mode := range map[string]string{"10.0.0.1_80": policy.StrictMTLS, "10.0.0.1_81": policy.PermissiveMTLS} {
		l, tls := &listenerv3.Listener{}, &tlsv3.DownstreamTlsContext{}
		if !readInto(t, w, ListenerType, c, name, l) {
			t.Fatalf("there is no listener %s", name)
		}
		checkMatches(t, l)
		for what, a := range arrivals {
			if got, want := a.outcome(l, 0), a.expected(mode); got != want {
				t.Errorf("%s at %s: %s, want %s", what, name, got, want)
			}
		}
		if err := chosenChain(l, 0, arrivals["mesh"]).GetTransportSocket().GetTypedConfig().UnmarshalTo(tls); err != nil {
			t.Fatal(err)
		}
		validation := tls.GetCommonTlsContext().GetCombinedValidationContext()
		var accepted []string
		for _, n := range validation.GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
			accepted = append(accepted, n.GetSanType().String()+" "+n.GetMatcher().GetPrefix())
		}
		accepted = append(accepted, validation.GetValidationContextSdsSecretConfig().GetName(), tls.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs()[0].GetName())
		if diff := gocmp.Diff([]string{"URI spiffe://cluster.local/", "ROOTCA", "default"}, accepted); diff != "" || !tls.GetRequireClientCertificate().GetValue() {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// labelled is a service of the namespace a with endpoints that may be behind sidecars.
func labelled(t *rapid.T) (events []model.Event, behindSidecars map[string]bool) {
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "a", Name: "s"}}
	events = append(events, model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
		Hosts: model.ListOf("s.example"), Ports: model.ListOf(model.Port{Number: 80, TargetPort: 81, Name: "http", Protocol: "HTTP"}), Resolution: model.ResolutionStatic,
	}}})
	behindSidecars = map[string]bool{}
	for address, has := range rapid.MapOf(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1"}), rapid.Bool()).Draw(t, "endpoints") {
		e := model.Endpoint{Address: address, ServiceAccount: "web"}
		if has {
			e.Labels = meshLabels
		}
		ref := owner
		ref.Kind, ref.Name = model.KindEndpoint, "s/"+address
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: e}})
		behindSidecars[address] = has
	}
	return events, behindSidecars
}

// Endpoints are called by mutual TLS exactly where their label and the mode of their port say
// so, and by clients that have a certificate.
func TestEndpointsAreCalledByMutualTLSBehindSidecars(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := drawMTLS(rt)
		events, behindSidecars := labelled(rt)
		w := mutualWorld(m, events...)
		c := world.Client{Namespace: "b", Kind: rapid.SampledFrom([]string{reach.KindEnvoy, reach.KindGRPC}).Draw(rt, "kind"), Proxy: world.Proxy{Role: rapid.SampledFrom([]string{"", "sidecar", "router"}).Draw(rt, "role")}}
		c.Account = rapid.SampledFrom([]string{"", "spiffe://cluster.local/ns/b/sa/client"}).Draw(rt, "account")
		at := names.Cluster("s.example", 80)
		assigned, cluster := &endpointv3.ClusterLoadAssignment{}, &clusterv3.Cluster{}
		if !readInto(t, w, EndpointType, c, at, assigned) || !readInto(t, w, ClusterType, c, at, cluster) {
			rt.Fatal("the service is missing")
		}
		for _, group := range assigned.GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				address := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
				mutual := e.GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"].GetFields()["tlsMode"].GetStringValue() == "istio"
				if want := behindSidecars[address] && modeOf(m, "a", 81) != policy.DisableMTLS && c.Kind == reach.KindEnvoy; mutual != want || !want && e.GetMetadata() != nil {
					rt.Errorf("%s of %s: mutual %t, want %t", address, c.Kind, mutual, want)
				}
			}
		}
		if secured := len(cluster.GetTransportSocketMatches()) == 1; c.Kind != reach.KindEnvoy || c.Account == "" {
			if secured || cluster.GetTransportSocket() != nil {
				rt.Errorf("%s with account %q: %v", c.Kind, c.Account, cluster)
			}
		} else if modeOf(m, "a", 81) != policy.DisableMTLS && !secured {
			rt.Errorf("no mutual TLS in %v", cluster)
		}
	})
}

// The cluster accepts the accounts of the endpoints, offers the protocol of the mesh, and names
// the port. A policy of the host goes before that.
func TestCallersDemandTheAccountsOfTheEndpoints(t *testing.T) {
	t.Parallel()
	own := &policy.UpstreamTLS{Mode: policy.IstioMutualTLS}
	for name, test := range map[string]struct {
		policy   *policy.UpstreamTLS
		accounts []string
		matched  bool
		want     []string
	}{
		"accounts":       {nil, []string{"web", "db"}, true, []string{"spiffe://cluster.local/ns/n/sa/db", "spiffe://cluster.local/ns/n/sa/web"}},
		"no account":     {nil, []string{""}, true, []string{"spiffe://cluster.local/ns/n/*"}},
		"policy of mesh": {own, []string{"web"}, false, []string{"spiffe://cluster.local/ns/n/sa/web"}},
	} {
		w := securedWorld(test.policy, nil, test.accounts...)
		settings := policy.New()
		settings.MTLS.Mode = policy.StrictMTLS
		settings.Hosts = []policy.HostPolicy{{Host: "api.example", Policy: policy.Policy{TLS: test.policy}}}
		w = worldUnder(settings.Prepare(), w.snapshot, true, "istio-system", nil)
		c := &clusterv3.Cluster{}
		readInto(t, w, ClusterType, provenAt("10.0.0.9"), names.Cluster("api.example", 80), c)
		socket, tls := c.GetTransportSocket(), &tlsv3.UpstreamTlsContext{}
		if test.matched {
			socket = c.GetTransportSocketMatches()[0].GetTransportSocket()
		}
		if err := socket.GetTypedConfig().UnmarshalTo(tls); err != nil {
			t.Fatalf("%s: %v in %v", name, err, c)
		}
		var got []string
		for _, n := range tls.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
			text := n.GetMatcher().GetExact()
			if prefix := n.GetMatcher().GetPrefix(); prefix != "" {
				text = prefix + "*"
			}
			got = append(got, text)
		}
		if diff := gocmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: accepted (- want, + got):\n%s", name, diff)
		}
		if sni, alpn := tls.GetSni(), tls.GetCommonTlsContext().GetAlpnProtocols(); sni != "outbound_.80_._.api.example" || !slices.Equal(alpn, []string{"istio", "h2"}) {
			t.Errorf("%s: it names %s and offers %v", name, sni, alpn)
		}
		if diff := gocmp.Diff([]string{"default", "ROOTCA"}, secretsIn(c)); diff != "" {
			t.Errorf("%s: secrets (- want, + got):\n%s", name, diff)
		}
	}
}
