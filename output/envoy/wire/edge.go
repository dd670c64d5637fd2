package wire

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	sniclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_cluster/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Edge is the listener of a port of the edge.
type Edge struct {
	Name, Address string
	BothFamilies  bool
	Port          *policy.EdgePort
	Routes        string  // of requests
	BySNI         []Chain // of connections, in order
	Rest          Target  // of all other connections
	Settings      *policy.Prepared
}

// Message returns the listener.
func (e *Edge) Message() *listenerv3.Listener {
	m := &listenerv3.Listener{Name: e.Name, Address: SocketAddress(e.Address, e.Port.Port()), TrafficDirection: corev3.TrafficDirection_OUTBOUND}
	if e.BothFamilies {
		m.AdditionalAddresses = alsoIPv6(e.Port.Port())
	}
	switch e.Port.Protocol {
	case policy.EdgeHTTP:
		requests := connectionManager(e.Name, e.Routes, e.Settings)
		// The caller is no workload of the mesh: its address is that of its connection,
		// whatever its headers say.
		requests.UseRemoteAddress = wrapperspb.Bool(true)
		m.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{filter(httpFilter, requests)}}}
	case policy.EdgeAutoPassthrough:
		e.passThrough(m)
	case policy.EdgeTLS:
		m.ListenerFilters = []*listenerv3.ListenerFilter{inspector(tlsInspector)}
		fallthrough
	default:
		e.connections(m)
	}
	applySettings(m, e.Settings)
	return m
}

func (e *Edge) connections(m *listenerv3.Listener) {
	for _, c := range e.BySNI {
		m.FilterChains = append(m.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: []string{c.Match}}, Filters: c.filters(e.Settings),
		})
	}
	m.DefaultFilterChain = &listenerv3.FilterChain{Filters: e.Rest.filters(e.Settings)}
	if e.Rest.Cluster == names.BlackHole {
		m.DefaultFilterChain.Name = names.BlackHole
	}
}

// passThrough sends TLS of the mesh to the cluster named in the handshake, so the listener
// does not depend on services. Only mesh names of exposed hosts are permitted, and no other
// cluster is reached.
func (e *Edge) passThrough(m *listenerv3.Listener) {
	ofMesh := &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW, Policies: map[string]*rbacconfigv3.Policy{"mesh": {
		Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
		Permissions: permissionsThrough(e.Port),
	}}}
	m.ListenerFilters = []*listenerv3.ListenerFilter{inspector(tlsInspector)}
	m.FilterChains = []*listenerv3.FilterChain{{
		FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: "tls"},
		Filters: append([]*listenerv3.Filter{
			filter("envoy.filters.network.rbac", &rbacv3.RBAC{StatPrefix: e.Name, Rules: ofMesh}),
			filter("envoy.filters.network.sni_cluster", &sniclusterv3.SniCluster{}),
		}, toCluster(names.BlackHole, e.Settings)...),
	}}
	m.DefaultFilterChain = &listenerv3.FilterChain{Name: names.BlackHole, Filters: toCluster(names.BlackHole, e.Settings)}
}

// permissionsThrough returns the permitted server names, those of exposed hosts. Any of them
// is enough.
func permissionsThrough(p *policy.EdgePort) (list []*rbacconfigv3.Permission) {
	prefix := handshakeOf(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: names.MeshPrefix}})
	for _, pattern := range p.Hosts {
		if pattern == "*" {
			return []*rbacconfigv3.Permission{prefix}
		}
		end, below := strings.CutPrefix(strings.ToLower(pattern), "*")
		if !below {
			end = names.MeshSeparator + end
		}
		suffix := handshakeOf(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: end}})
		list = append(list, &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_AndRules{
			AndRules: &rbacconfigv3.Permission_Set{Rules: []*rbacconfigv3.Permission{prefix, suffix}},
		}})
	}
	return list
}

// handshakeOf permits handshakes by the server name.
func handshakeOf(m *matcherv3.StringMatcher) *rbacconfigv3.Permission {
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_RequestedServerName{RequestedServerName: m}}
}
