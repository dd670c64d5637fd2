package node

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Addresses are the addresses that an Envoy declares, in order, each followed by a space.
type Addresses string

// AddressesOf returns the declared addresses of a client.
func AddressesOf(c world.Client) Addresses {
	var list []string
	for _, text := range c.Addresses {
		if ip, err := netip.ParseAddr(text); err == nil {
			list = append(list, ip.Unmap().WithZone("").String()+" ")
		}
	}
	slices.Sort(list)
	return Addresses(strings.Join(slices.Compact(list), ""))
}

// Has reports whether an address is one of them.
func (o Addresses) Has(ip netip.Addr) bool {
	text := ip.Unmap().WithZone("").String() + " "
	return strings.HasPrefix(string(o), text) || strings.Contains(string(o), " "+text)
}

// Reserved reports whether a port is one of the Envoy's own. Two listeners of one
// address and port would be rejected together.
func (p Proxy) Reserved(number uint32) bool {
	return p.Mode != None && (number == policy.OutboundPort || number == policy.InboundPort)
}

// Has reports whether Envoys with addresses of a family connect to an address.
func (f Family) Has(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && (f == AnyFamily || f == DualStack || ip.Unmap().Is4() == (f == IPv4))
}

// Proxy is how the Envoys of a view stand in the path of workloads. The zero value is
// that of Envoys with listeners of their own, which are given clusters and endpoints.
type Proxy struct {
	Role   Role
	Mode   Interception
	Family Family
	Domain string // in which names of services may be short; only for routes
	// Unprivileged means that it cannot bind ports below 1024. Only for Envoys that bind ports
	// of services.
	Unprivileged bool
	Outbound     world.Ports // at which it listens on loopback for services; only for listeners with the mode none
	Own          Addresses   // of an edge; only for clusters and endpoints
	// Cluster is the Kubernetes cluster of the addresses of services that count; empty where
	// all clients have the same. It is of listeners and routes of sidecars, and of their clusters where it
	// decides which services are headless.
	Cluster string
}

// Role is the role of an Envoy: a sidecar or an edge.
type Role uint8

// The roles of Envoys.
const (
	NoRole  Role = iota
	Sidecar      // those of its own workload, in both directions
	Edge         // those that come from elsewhere
)

// Interception is how the connections of a sidecar's workload reach it.
type Interception uint8

// The ways to a sidecar.
const (
	redirect Interception = iota // by iptables, to one port
	TProxy                       // likewise, with their addresses left as they are
	None                         // not by themselves: the workload is given where to connect to
)

// ProxyOf returns the Envoy of a client; zero for one outside of the path of workloads.
func ProxyOf(c world.Client) Proxy {
	p := Proxy{Family: FamilyOf(c.Addresses)}
	switch c.Proxy.Role {
	case "sidecar":
		p.Role = Sidecar
	case "router":
		p.Role = Edge
	default:
		return Proxy{}
	}
	switch c.Proxy.Interception {
	case "TPROXY":
		p.Mode = TProxy
	case "NONE":
		p.Mode, p.Outbound = None, c.Proxy.Outbound
	}
	p.Unprivileged = c.Proxy.Unprivileged && (p.Mode == None || p.Role == Edge)
	return p
}

// Opens reports whether a listener that services share can have a port: the node lists it,
// and nothing is in its way.
func (p Proxy) Opens(number uint32) bool {
	return p.Obstructs(number) == Unobstructed && (p.Role != Sidecar || p.Mode != None || p.Outbound.Has(number))
}

// Obstruction is why an Envoy has no listener at a port that its node may list.
type Obstruction uint8

// The obstructions.
const (
	Unobstructed Obstruction = iota
	Unbindable               // the port is low, and the Envoy has no privileges
	EnvoysOwn                // Envoys listen there themselves
)

// Obstructs returns the reason why a shared listener cannot have a port. Envoy rejects a
// listener with the address of a listener of its bootstrap, even if that binds no port.
func (p Proxy) Obstructs(number uint32) Obstruction {
	own := policy.IsOwnPort(number)
	if p.Mode != None {
		own = number == policy.HealthPort || number == policy.MetricsPort
	}
	switch {
	case p.Unprivileged && number < world.FirstUnprivilegedPort:
		return Unbindable
	case own:
		return EnvoysOwn
	default:
		return Unobstructed
	}
}

// Shared is the address on which services listen that have none of their own.
func (p Proxy) Shared() string {
	switch {
	case p.Mode == None && p.Family == IPv6:
		return names.LocalIPv6
	case p.Mode == None:
		return names.LocalIPv4
	case p.Family == IPv6:
		return names.AnyIPv6
	default:
		return names.AnyIPv4
	}
}

// AlsoIPv6 reports whether a listener on an address is on all IPv6 addresses, too: on all
// IPv4 addresses, of an Envoy with both families. On loopback the workload may listen itself.
func (p Proxy) AlsoIPv6(address string) bool {
	return p.Family == DualStack && address == names.AnyIPv4
}

// Everywhere is the wildcard address of the Envoy's family.
func (p Proxy) Everywhere() string {
	if p.Family == IPv6 {
		return names.AnyIPv6
	}
	return names.AnyIPv4
}

// Resolver is how the Envoys of a view resolve names.
type Resolver struct {
	Family   Family
	Outdated bool // they do not have [names.DNSCluster]
}

// Family is the family of a workload's addresses. Its Envoy resolves names to that family, and to
// IPv4 where it has both and the name has IPv4.
type Family uint8

// The families of addresses.
const (
	AnyFamily Family = iota // the Envoy declares no addresses
	IPv4
	IPv6
	DualStack
)

// ResolverOf returns how the Envoy of a client resolves names.
func ResolverOf(c world.Client) Resolver {
	return Resolver{Family: FamilyOf(c.Addresses), Outdated: !slices.Contains(c.Extensions, names.DNSCluster)}
}

// FamilyOf is the family of a workload's addresses. A text that is no address counts as IPv4.
func FamilyOf(addresses []string) Family {
	of := AnyFamily
	for _, text := range addresses {
		is := IPv6
		if ip, err := netip.ParseAddr(text); err != nil || ip.Unmap().Is4() {
			is = IPv4
		}
		if of != AnyFamily && of != is {
			return DualStack
		}
		of = is
	}
	return of
}

// HostsFromMajor and HostsFromMinor are the first release that takes single hosts over ADS, as
// far as is known: Envoy 1.40 does, and releases up to 1.30 at least reject a route configuration
// with VHDS over ADS.
const (
	HostsFromMajor = 1
	HostsFromMinor = 40
)

// TakesVirtualHosts reports whether a client takes hosts one by one.
func TakesVirtualHosts(c world.Client) bool {
	return c.Increments && slices.Compare(c.Release[:], []uint32{HostsFromMajor, HostsFromMinor}) >= 0
}
