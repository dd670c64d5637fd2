package envoy

import (
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// proxy is how the Envoys of a view stand in the path of workloads. The zero value is
// that of Envoys with listeners of their own, which are given clusters and endpoints.
type proxy struct {
	role   role
	mode   interception
	family family
	domain string // in which names of services may be short; of routes alone
	// unprivileged says that it cannot bind low ports, of one that binds those of services.
	unprivileged bool
	outbound     push.Ports   // at which it listens on loopback for services; of listeners with the mode none alone
	own          ownAddresses // of an edge; of clusters and endpoints alone
	// cluster is the one whose addresses of services count; empty where all clients have
	// the same. It is of listeners and routes of sidecars, and of their clusters where it
	// decides which services are headless.
	cluster string
}

// role is whose connections an Envoy takes.
type role uint8

const (
	noRole  role = iota
	sidecar      // those of its own workload, in both directions
	edge         // those that come from elsewhere
)

// interception is how the connections of a sidecar's workload reach it.
type interception uint8

const (
	redirect interception = iota // by iptables, to one port
	tproxy                       // likewise, with their addresses left as they are
	none                         // not by themselves: the workload is given where to connect to
)

func proxyOf(c push.Client) proxy {
	p := proxy{family: familyOf(c.Addresses)}
	switch c.Proxy.Role {
	case "sidecar":
		p.role = sidecar
	case "router":
		p.role = edge
	default:
		return proxy{}
	}
	switch c.Proxy.Interception {
	case "TPROXY":
		p.mode = tproxy
	case "NONE":
		p.mode, p.outbound = none, c.Proxy.Outbound
	}
	p.unprivileged = c.Proxy.Unprivileged && (p.mode == none || p.role == edge)
	return p
}

// ofClusters is as much of [World.proxyOf] as clusters depend on.
func (w *World) ofClusters(c push.Client) proxy {
	p := w.proxyOf(c)
	of := proxy{role: p.role}
	if p.role == edge {
		of.own = ownAddressesOf(c)
	}
	switch {
	case p.role == sidecar && p.mode == none:
		of.mode = none
	case w.snapshot.HeadlessDiffers():
		of.cluster = p.cluster
	}
	return of
}

// opens reports whether a listener that services share can have a port: the node lists it,
// and nothing is in its way.
func (p proxy) opens(number uint32) bool {
	return p.obstructs(number) == unobstructed && (p.role != sidecar || p.mode != none || p.outbound.Has(number))
}

// obstruction is why an Envoy has no listener at a port that its node may list.
type obstruction uint8

const (
	unobstructed obstruction = iota
	unbindable               // the port is low, and the Envoy has no privileges
	envoysOwn                // Envoys listen there themselves
)

// obstructs returns what is in the way of a listener that services share. Envoy rejects one
// with the address of a listener of its bootstrap, bound or not.
func (p proxy) obstructs(number uint32) obstruction {
	own := policy.IsOwnPort(number)
	if p.mode != none {
		own = number == policy.HealthPort || number == policy.MetricsPort
	}
	switch {
	case p.unprivileged && number < push.FirstUnprivilegedPort:
		return unbindable
	case own:
		return envoysOwn
	default:
		return unobstructed
	}
}

// proxyOf is [proxyOf] with the client's cluster, where that decides anything.
func (w *World) proxyOf(c push.Client) proxy {
	p := proxyOf(c)
	if p.role == sidecar {
		p.cluster = w.snapshot.AddressCluster(c.Cluster)
	}
	return p
}

// shared is the address on which services listen that have none of their own.
func (p proxy) shared() string {
	switch {
	case p.mode == none && p.family == ipv6:
		return names.LocalIPv6
	case p.mode == none:
		return names.LocalIPv4
	case p.family == ipv6:
		return names.AnyIPv6
	default:
		return names.AnyIPv4
	}
}

// alsoIPv6 reports whether a listener on an address is on all IPv6 addresses, too: on all
// IPv4 addresses, of an Envoy with both families. On loopback the workload may listen itself.
func (p proxy) alsoIPv6(address string) bool { return p.family == both && address == names.AnyIPv4 }

// everywhere is the address of what is reached on any address.
func (p proxy) everywhere() string {
	if p.family == ipv6 {
		return names.AnyIPv6
	}
	return names.AnyIPv4
}
