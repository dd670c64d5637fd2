package lb

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/counts"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Avoided are the endpoints of a service that an edge is not sent, because they are the edge
// itself: connections from outside would reach the admin interface of its Envoy, or loop.
// The zero value avoids none.
type Avoided struct {
	local bool             // those at local addresses
	own   node.Addresses   // those at the ports that the Envoy listens on
	edge  *policy.Prepared // of which these ports are; nil without own
}

// AvoidedIn returns the endpoints of a host that an edge avoids. They are the same for all
// edges if no endpoint is at a port that an edge listens on.
func AvoidedIn(s *policy.Prepared, p node.Proxy, host string, endpoints *catalog.Endpoints) (a Avoided) {
	if p.Role != node.Edge || endpoints == nil {
		return a
	}
	a.local = endpoints.Counts().Local > 0 && !s.AllowsLocal(host)
	own := Avoided{own: p.Own, edge: s}
	for text := range strings.FieldsSeq(string(p.Own)) {
		for _, form := range []string{text, "::ffff:" + text} { // also as an IPv4-mapped IPv6 address
			for e := range endpoints.At(form) {
				if own.isOwn(e.Address, e.Port) {
					a.own, a.edge = own.own, own.edge
				}
			}
		}
	}
	return a
}

// has reports whether an endpoint is avoided.
func (a Avoided) has(e catalog.Endpoint) bool {
	if a == (Avoided{}) {
		return false
	}
	if a.local && counts.IsLocal(e.Endpoint) {
		return true
	}
	return a.isOwn(e.Address, e.Port) || slices.ContainsFunc(e.Also.Slice(), func(also string) bool { return a.isOwn(also, e.Port) })
}

func (a Avoided) isOwn(address string, port uint32) bool {
	if a.own == "" || port == 0 {
		return false
	}
	ip, err := netip.ParseAddr(address)
	if err != nil || !a.own.Has(ip) {
		return false
	}
	_, listens := a.edge.EdgePort(port)
	return listens || policy.IsOwnPort(port)
}
