package envoy

import (
	"iter"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// edgeRoutes is the route configuration of a port of the edge. A request for a host that
// it does not have is answered 404 by Envoy.
type edgeRoutes struct {
	proxySlot
	port     *policy.EdgePort
	services *definitions
}

// Refers implements [push.Referrer].
func (r edgeRoutes) Refers(to string) iter.Seq[string] {
	if to != wire.ClusterURL {
		return nothing
	}
	return func(yield func(string) bool) {
		for _, m := range r.services.members(r.view, r.port) {
			if !yield(m.Cluster()) {
				return
			}
		}
	}
}

// Encode implements [push.Subject]. A domain may occur only once, whatever its case:
// the oldest service has it.
func (r edgeRoutes) Encode() push.Encoded {
	m := wire.Routes(r.name, false)
	taken := claims{}
	for _, member := range r.services.members(r.view, r.port) {
		if host := r.virtualHost(member, taken); host != nil {
			m.VirtualHosts = append(m.VirtualHosts, host)
		}
	}
	slices.SortFunc(m.GetVirtualHosts(), func(a, b *routev3.VirtualHost) int { return strings.Compare(a.GetName(), b.GetName()) })
	return encode(m.GetName(), wire.RouteURL, m)
}

// virtualHost leads requests to a service; nil if its domains are taken. Short names and
// addresses are of the mesh, and nobody outside of it calls by them.
func (r edgeRoutes) virtualHost(m reach.EdgeMember, taken claims) *routev3.VirtualHost {
	host := m.Key.Host
	domains := taken.leave(edgeDomains(host))
	if len(domains) == 0 {
		return nil
	}
	return wire.VirtualHost(names.Listener(host, r.port.Port()), domains, wire.Target{Cluster: m.Cluster(), Policy: r.view.settings.OrIstio().For(host, m.Traffic.Affinity)})
}
