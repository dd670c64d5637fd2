package envoy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// avoided says which endpoints of a service an edge is not given, for they would lead to
// the edge itself: connections from outside would reach the admin interface of its Envoy,
// or go round in a circle. The zero value avoids none.
type avoided struct {
	local bool             // those at local addresses
	own   ownAddresses     // those at the ports that the Envoy listens on
	edge  *policy.Prepared // of which these ports are; nil without own
}

// ownAddresses are the addresses that an Envoy says it has, in order, each followed by a
// space.
type ownAddresses string

func ownAddressesOf(c push.Client) ownAddresses {
	var list []string
	for _, text := range c.Addresses {
		if ip, err := netip.ParseAddr(text); err == nil {
			list = append(list, ip.Unmap().WithZone("").String()+" ")
		}
	}
	slices.Sort(list)
	return ownAddresses(strings.Join(slices.Compact(list), ""))
}

func (o ownAddresses) has(ip netip.Addr) bool {
	text := ip.Unmap().WithZone("").String() + " "
	return strings.HasPrefix(string(o), text) || strings.Contains(string(o), " "+text)
}

// avoidedIn returns what an edge avoids of the endpoints of a host. It is the same for all
// edges if no endpoint is at a port that an edge listens on.
func avoidedIn(s *policy.Prepared, p proxy, host string, endpoints *catalog.Endpoints) (a avoided) {
	if p.role != edge || endpoints == nil {
		return a
	}
	a.local = endpoints.Counts().Local > 0 && !s.AllowsLocal(host)
	own := avoided{own: p.own, edge: s}
	for text := range strings.FieldsSeq(string(p.own)) {
		for _, form := range []string{text, "::ffff:" + text} { // also as IPv6 has it
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
func (a avoided) has(e catalog.Endpoint) bool {
	if a == (avoided{}) {
		return false
	}
	if a.local && catalog.IsLocal(e.Endpoint) {
		return true
	}
	return a.isOwn(e.Address, e.Port) || slices.ContainsFunc(e.Also.Slice(), func(also string) bool { return a.isOwn(also, e.Port) })
}

func (a avoided) isOwn(address string, port uint32) bool {
	if a.own == "" || port == 0 {
		return false
	}
	ip, err := netip.ParseAddr(address)
	if err != nil || !a.own.has(ip) {
		return false
	}
	_, listens := a.edge.EdgePort(port)
	return listens || policy.IsOwnPort(port)
}
