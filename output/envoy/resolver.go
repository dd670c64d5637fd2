package envoy

import (
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// resolver is how the Envoys of a view resolve names.
type resolver struct {
	family   family
	outdated bool // they do not have [wire.DNSCluster]
}

// family is which addresses are asked for.
type family uint8

const (
	unknownFamily family = iota // the Envoy says nothing of its own addresses
	ipv4
	ipv6
	both
)

func resolverOf(c push.Client) resolver {
	return resolver{family: familyOf(c.Addresses).resolved(), outdated: !slices.Contains(c.Extensions, wire.DNSCluster)}
}

// familyOf is the family of a workload's addresses. A text that is no address counts as IPv4.
func familyOf(addresses []string) family {
	of := unknownFamily
	for _, text := range addresses {
		is := ipv6
		if ip, err := netip.ParseAddr(text); err != nil || ip.Unmap().Is4() {
			is = ipv4
		}
		if of != unknownFamily && of != is {
			return both
		}
		of = is
	}
	return of
}

// resolved is the family that names are resolved to. As with istiod it is IPv4 for a workload
// of both, as long as Istio's dual stack is not switched on.
func (f family) resolved() family {
	if f == both {
		return ipv4
	}
	return f
}

func (f family) wire() wire.Family {
	switch f {
	case ipv4:
		return wire.IPv4
	case ipv6:
		return wire.IPv6
	default:
		return wire.AnyFamily
	}
}
