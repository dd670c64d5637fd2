package envoy

import (
	"iter"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	sniclusterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_cluster/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// edgeListener is the listener of a port of the edge.
type edgeListener struct {
	proxySlot
	port     *policy.EdgePort
	services *definitions // nil where the listener does not depend on them
	hosts    *definitions // nil where the listener does not lead to single hosts
}

// Refers implements [push.Referrer].
func (l edgeListener) Refers(to string) iter.Seq[string] {
	switch {
	case to == routeURL && l.port.Protocol == policy.EdgeHTTP:
		return one(l.routes())
	case to == virtualHostURL && l.hosts != nil:
		return l.hosts.edgeHostNames(l.view, l.port)
	case to == clusterURL && l.port.Protocol == policy.EdgeAutoPassthrough:
		return one(blackHoleCluster)
	case to == clusterURL && l.port.Protocol != policy.EdgeHTTP:
		return func(yield func(string) bool) {
			for _, c := range l.chains() {
				if !yield(c.cluster) {
					return
				}
			}
		}
	}
	return nothing
}

// routes is the route configuration of requests.
func (l edgeListener) routes() string {
	if l.view.single {
		return edgeHostRoutesName(l.port)
	}
	return edgeRoutesName(l.port)
}

// chains lead connections to services, and the last all others.
func (l edgeListener) chains() []chain {
	members := l.services.members(l.view, l.port)
	if l.port.Protocol == policy.EdgeTCP {
		if len(members) > 0 {
			return []chain{{cluster: members[0].cluster(), affinity: members[0].Traffic.Affinity}}
		}
		return []chain{{cluster: blackHoleCluster}}
	}
	var list []chain
	taken := claims{}
	for _, m := range members {
		if name, ok := sniOf(m.Key.Host); ok {
			taken.add(&list, chain{match: name, cluster: m.cluster(), affinity: m.Traffic.Affinity})
		}
	}
	return append(inOrder(list), chain{cluster: blackHoleCluster})
}

// Encode implements [push.Subject].
func (l edgeListener) Encode() push.Encoded {
	m := &listenerv3.Listener{
		Name:                l.name,
		Address:             socketAt(l.view.proxy.everywhere(), l.port.Port()),
		AdditionalAddresses: l.view.proxy.also(l.view.proxy.everywhere(), l.port.Port()),
		TrafficDirection:    corev3.TrafficDirection_OUTBOUND,
	}
	switch l.port.Protocol {
	case policy.EdgeHTTP:
		requests := l.view.hcm(l.name, l.routes())
		// Whoever calls is no workload of the mesh: where it is from is the address of
		// its connection, whatever its headers say.
		requests.UseRemoteAddress = wrapperspb.Bool(true)
		m.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{filter(httpFilter, requests)}}}
	case policy.EdgeAutoPassthrough:
		l.passThrough(m)
	case policy.EdgeTLS:
		m.ListenerFilters = []*listenerv3.ListenerFilter{inspector(tlsInspector)}
		fallthrough
	default:
		l.connections(m)
	}
	l.view.logUnmatched(m)
	return encode(l.name, listenerURL, m)
}

func (l edgeListener) connections(m *listenerv3.Listener) {
	chains := l.chains()
	rest := len(chains) - 1
	for _, c := range chains[:rest] {
		m.FilterChains = append(m.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: []string{c.match}}, Filters: l.view.toService(c.cluster, c.affinity),
		})
	}
	other := &listenerv3.FilterChain{Filters: l.view.toService(chains[rest].cluster, chains[rest].affinity)}
	if chains[rest].cluster == blackHoleCluster {
		other.Name = blackHoleCluster
	}
	m.DefaultFilterChain = other
}

// passThrough leads TLS of the mesh to the cluster that is called as the handshake says.
// So the listener is the same whatever services there are. No other cluster is reached:
// of the names that a client may say, those of the mesh alone go on, of exposed hosts.
func (l edgeListener) passThrough(m *listenerv3.Listener) {
	ofMesh := &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW, Policies: map[string]*rbacconfigv3.Policy{"mesh": {
		Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
		Permissions: permissionsThrough(l.port),
	}}}
	m.ListenerFilters = []*listenerv3.ListenerFilter{inspector(tlsInspector)}
	m.FilterChains = []*listenerv3.FilterChain{{
		FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: "tls"},
		Filters: append([]*listenerv3.Filter{
			filter("envoy.filters.network.rbac", &rbacv3.RBAC{StatPrefix: l.name, Rules: ofMesh}),
			filter("envoy.filters.network.sni_cluster", &sniclusterv3.SniCluster{}),
		}, l.view.toTCP(blackHoleCluster)...),
	}}
	m.DefaultFilterChain = &listenerv3.FilterChain{Name: blackHoleCluster, Filters: l.view.toTCP(blackHoleCluster)}
}

// permissionsThrough are the names in handshakes that lead to exposed hosts: any of them is
// enough.
func permissionsThrough(p *policy.EdgePort) (names []*rbacconfigv3.Permission) {
	prefix := handshakeOf(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: meshNamePrefix}})
	for _, pattern := range p.Hosts {
		if pattern == "*" {
			return []*rbacconfigv3.Permission{prefix}
		}
		end, below := strings.CutPrefix(strings.ToLower(pattern), "*")
		if !below {
			end = meshNameSeparator + end
		}
		suffix := handshakeOf(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: end}})
		names = append(names, &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_AndRules{
			AndRules: &rbacconfigv3.Permission_Set{Rules: []*rbacconfigv3.Permission{prefix, suffix}},
		}})
	}
	return names
}

// handshakeOf permits handshakes by the server name.
func handshakeOf(m *matcherv3.StringMatcher) *rbacconfigv3.Permission {
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_RequestedServerName{RequestedServerName: m}}
}
