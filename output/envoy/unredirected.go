package envoy

import (
	"iter"
	"net/netip"
	"strings"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An Envoy without redirection (INTERCEPTION_MODE NONE) listens at the bind addresses in its
// node metadata, and forwards to the workload. It does so only for ports of some service, since
// the service defines the protocol.

// explicitBinds are the bind addresses of an Envoy and the addresses of its workload, by port,
// with the kind of traffic if a service has the port, and its mode of mutual TLS if it takes
// that, as "h 10.0.0.1:80 127.0.0.1:8080,ts …,- …".
type explicitBinds string

// unserved marks a port that no service has.
const unserved = "-"

// explicitBind is the bind address of one port, and the workload's own address.
type explicitBind struct {
	carries string // the letters of its traffic
	at, to  netip.AddrPort
}

func (b explicitBind) port() uint32 { return uint32(b.at.Port()) }

// name is the name of the listener, as in Istio.
func (b explicitBind) name() string { return names.Socket(b.at.Addr().String(), b.port()) }

func writeBinds(binds []world.Bind, kinds map[uint32]carried) explicitBinds {
	var b []byte
	for _, bind := range binds {
		if len(b) > 0 {
			b = append(b, ',')
		}
		if of, served := kinds[uint32(bind.At.Port())]; served {
			b = of.appendMarks(b)
		} else {
			b = append(b, unserved...)
		}
		b = append(b, ' ')
		b = append(bind.At.AppendTo(b), ' ')
		b = bind.To.AppendTo(b)
	}
	return explicitBinds(b)
}

func (p explicitBinds) all() iter.Seq[explicitBind] {
	return func(yield func(explicitBind) bool) {
		for item := range strings.SplitSeq(string(p), ",") {
			if item == "" {
				return
			}
			letters, addresses, _ := strings.Cut(item, " ")
			at, to, _ := strings.Cut(addresses, " ")
			if !yield(explicitBind{letters, netip.MustParseAddrPort(at), netip.MustParseAddrPort(to)}) {
				return
			}
		}
	}
}

// served yields the binds of ports that some service has.
func (p explicitBinds) served() iter.Seq[explicitBind] {
	return func(yield func(explicitBind) bool) {
		for b := range p.all() {
			if b.carries != unserved && !yield(b) {
				return
			}
		}
	}
}

// occupies reports whether the workload or its Envoy listens at an address and port, so that
// nothing else may. Ports without a service count, too: they are the workload's.
func (p explicitBinds) occupies(address string, number uint32) bool {
	if p == "" {
		return false
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	place := netip.AddrPortFrom(ip, uint16(number)) //nolint:gosec // a port
	for b := range p.all() {
		if b.at == place || b.to == place {
			return true
		}
	}
	return false
}

// findBindListener returns the listener of one port of the workload.
func findBindListener(v View, name string) (world.Subject, bool) {
	for b := range v.inbound.binds.served() {
		if b.name() == name {
			return bindListener{View{settings: v.settings, proxy: node.Proxy{Role: v.proxy.Role}}, b}, true
		}
	}
	return nil, false
}

// bindListener is the listener of one port. Each port has its own, so that changes of other
// ports do not touch it.
type bindListener struct {
	view View // reduced to the fields that the listener depends on
	explicitBind
}

// Slot implements [world.Subject].
func (l bindListener) Slot() any { return l }

// Refers implements [world.Referrer].
func (l bindListener) Refers(to string) iter.Seq[string] {
	if to != wire.ClusterURL {
		return nothing
	}
	return one(names.InboundCluster(l.port()))
}

// Encode implements [world.Subject].
func (l bindListener) Encode() world.Encoded {
	p := inboundPort(l.port(), markedBy(l.carries))
	return encode(l.name(), wire.ListenerURL, wire.BindListener(l.name(), l.at.Addr().String(), p, l.view.settings.OrIstio()))
}

// bindCluster is the cluster of the address at which the workload itself listens.
type bindCluster struct {
	port uint32
	to   netip.AddrPort
}

// Slot implements [world.Subject].
func (c bindCluster) Slot() any { return c }

// Encode implements [world.Subject].
func (c bindCluster) Encode() world.Encoded {
	return encode(names.InboundCluster(c.port), wire.ClusterURL, wire.BindCluster(c.port, c.to))
}
