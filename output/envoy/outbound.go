package envoy

import (
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// A service port is reached through the listener of an address and a port. Which
// one follows from the service alone, so that a service that comes changes no
// listener but those that it is reached through.

// listensAt yields the addresses on which Envoys listen for a port of a service, but for
// those of its endpoints.
func (p proxy) listensAt(s catalog.ServiceDefinition, index *catalog.PortServices) iter.Seq[string] {
	return func(yield func(string) bool) {
		port, _ := s.Port(index.Number)
		kind := trafficOf(port)
		switch {
		case kind == notTCP, p.reserved(port.Number), p.apart(s, index):
			return
		case p.mode == none, kind == httpOnly:
			if p.opens(port.Number) {
				yield(p.shared())
			}
			return
		}
		shares := true
		for address := range s.OwnAddressesIn(p.cluster) {
			shares = false
			if p.family.has(address) && !yield(address) {
				return
			}
		}
		for range s.BlocksIn(p.cluster) {
			shares = true
			break
		}
		if shares && p.opens(port.Number) {
			yield(p.shared())
		}
	}
}

// listens reports whether an address is one of [proxy.listensAt]. It does not go through
// the addresses of a service, which may be many, if it is called at all of them.
func (p proxy) listens(s catalog.ServiceDefinition, index *catalog.PortServices, address string) bool {
	port, _ := s.Port(index.Number)
	if address != p.shared() && len(s.ByCluster) == 0 && !s.Traffic.ClusterLocal {
		kind := trafficOf(port)
		return kind != notTCP && kind != httpOnly && p.mode != none && p.family.has(address) &&
			!p.reserved(port.Number) && !p.apart(s, index) && index.IsAt(s.Key, address)
	}
	for at := range p.listensAt(s, index) {
		if at == address {
			return true
		}
	}
	return false
}

// reserved reports whether a port is one of the Envoy's own. Two listeners of one
// address and port would be rejected together.
func (p proxy) reserved(number uint32) bool {
	return p.mode != none && (number == outboundPort || number == inboundPort)
}

// Ports to which connections are redirected, as Istio's scripts for iptables have them.
const (
	outboundPort = 15001
	inboundPort  = 15006
)

// isTaken reports whether an address that a service has in another cluster is that of
// somebody else in the view's.
func (v View) isTaken(s catalog.ServiceDefinition, index *catalog.PortServices, address string) bool {
	cluster := v.proxy.cluster
	return s.ForeignIn(cluster) && address != v.proxy.shared() && index.TakenIn(cluster, address, v.viewer())
}

// has reports whether Envoys with addresses of a family connect to an address.
func (f family) has(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && (f == unknownFamily || f == both || ip.Unmap().Is4() == (f == ipv4))
}

// members yields the services that a viewer reaches through a listener, by host.
func members(v View, index *catalog.PortServices, address string) iter.Seq[catalog.ServiceDefinition] {
	candidates := index.VisibleAt(v.viewer(), address)
	if address == v.proxy.shared() {
		candidates = index.Visible(v.viewer())
	}
	return func(yield func(catalog.ServiceDefinition) bool) {
		for s := range candidates {
			if !hasCluster(s, index.Number) {
				continue
			}
			if v.proxy.listens(s, index, address) && !v.isTaken(s, index, address) && !yield(s) {
				return
			}
		}
	}
}

// hasCluster reports whether Envoys have a cluster for a port of the service.
func hasCluster(s catalog.ServiceDefinition, number uint32) bool {
	port, _ := s.Port(number)
	f, _ := offer(KindEnvoy, &catalog.Service{ServiceDefinition: s}, port)
	return f != noForm
}

// socketName is the name of the listener of an address and port.
func socketName(address string, port uint32) string {
	return address + "_" + strconv.FormatUint(uint64(port), 10)
}

// parseSocketName accepts exactly what [socketName] writes.
func parseSocketName(name string) (address string, port uint32, ok bool) {
	at := strings.LastIndexByte(name, '_')
	if at <= 0 {
		return "", 0, false
	}
	port, ok = parsePort(name[at+1:])
	return name[:at], port, ok
}
