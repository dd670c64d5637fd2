package envoy

import (
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// An Envoy that no connections are redirected to listens at ports of its workload as its
// node says, and leads to where the workload itself listens. It does so as soon as a
// service has such a port, for that says what the port carries.

// boundPorts are where an Envoy listens and leads to, by port, and what the bytes are
// taken for if a service has the port, as "h 10.0.0.1:80 127.0.0.1:8080,- …".
type boundPorts string

// unserved marks a port that no service has.
const unserved = '-'

// bound is one of them.
type bound struct {
	mark   byte
	at, to netip.AddrPort
}

func (b bound) port() uint32 { return uint32(b.at.Port()) }

// name is that of the listener, which is Istio's.
func (b bound) name() string { return names.Socket(b.at.Addr().String(), b.port()) }

func writeBinds(binds []push.Bind, kinds map[uint32]reach.Traffic) boundPorts {
	var b []byte
	for _, bind := range binds {
		mark := byte(unserved)
		if kind, served := kinds[uint32(bind.At.Port())]; served {
			mark = marks[kind]
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, mark, ' ')
		b = append(bind.At.AppendTo(b), ' ')
		b = bind.To.AppendTo(b)
	}
	return boundPorts(b)
}

func (p boundPorts) all() iter.Seq[bound] {
	return func(yield func(bound) bool) {
		for item := range strings.SplitSeq(string(p), ",") {
			if item == "" {
				return
			}
			at, to, _ := strings.Cut(item[2:], " ")
			if !yield(bound{item[0], netip.MustParseAddrPort(at), netip.MustParseAddrPort(to)}) {
				return
			}
		}
	}
}

// served yields those that some service has.
func (p boundPorts) served() iter.Seq[bound] {
	return func(yield func(bound) bool) {
		for b := range p.all() {
			if b.mark != unserved && !yield(b) {
				return
			}
		}
	}
}

// claim reports whether the workload or its Envoy listens at an address and port, so that
// nothing else may. It holds for ports that no service has, too: those are the workload's.
func (p boundPorts) claim(address string, number uint32) bool {
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

// findBoundListener returns the listener of one port of the workload.
func findBoundListener(v View, name string) (push.Subject, bool) {
	for b := range v.inbound.binds.served() {
		if b.name() == name {
			return boundListener{View{settings: v.settings, proxy: node.Proxy{Role: v.proxy.Role}}, b}, true
		}
	}
	return nil, false
}

// boundListener is that of one port, for any other to come and go beside it.
type boundListener struct {
	view View // without what does not matter here
	bound
}

// Slot implements [push.Subject].
func (l boundListener) Slot() any { return l }

// Refers implements [push.Referrer].
func (l boundListener) Refers(to string) iter.Seq[string] {
	if to != wire.ClusterURL {
		return nothing
	}
	return one(names.InboundCluster(l.port()))
}

// Encode implements [push.Subject].
func (l boundListener) Encode() push.Encoded {
	p := inboundPort(l.port(), markedBy(l.mark))
	return encode(l.name(), wire.ListenerURL, wire.Bound(l.name(), l.at.Addr().String(), p, l.view.settings.OrIstio().Defaults))
}

// boundCluster leads to where the workload itself listens.
type boundCluster struct {
	port uint32
	to   netip.AddrPort
}

// Slot implements [push.Subject].
func (c boundCluster) Slot() any { return c }

// Encode implements [push.Subject].
func (c boundCluster) Encode() push.Encoded {
	return encode(names.InboundCluster(c.port), wire.ClusterURL, wire.BoundCluster(c.port, c.to))
}

// Notices returns, for a snapshot, the services' ports at which a sidecar with
// INTERCEPTION_MODE NONE has no listener, by the reason. Clients of one view are looked at
// once.
func Notices(now *catalog.Snapshot, root string) func(push.Client) []output.Notice {
	known := map[View][]output.Notice{}
	return func(c push.Client) []output.Notice {
		p := node.ProxyOf(c)
		if c.Kind != reach.KindEnvoy || p.Role != node.Sidecar || p.Mode != node.None {
			return nil
		}
		v := View{Namespace: c.Namespace, scope: now.ScopeOf(c.Namespace, c.Labels, root), proxy: p}
		list, found := known[v]
		if !found {
			list = unopened(now, v)
			known[v] = list
		}
		return list
	}
}

// outboundField is where a node lists the ports of loopback at which its sidecar listens for
// services.
const outboundField = "ISTHMUS_OUTBOUND"

// mostPortsShown bounds the ports that a notice names.
const mostPortsShown = 20

// unopened lists why ports of services have no listener on loopback.
func unopened(now *catalog.Snapshot, v View) (list []output.Notice) {
	var unlisted, unprivileged, own []string
	for index := range now.Ports() {
		number := index.Number
		if v.proxy.Opens(number) || !isCalled(v, index) {
			continue
		}
		text := strconv.FormatUint(uint64(number), 10)
		switch v.proxy.Obstructs(number) {
		case node.Unbindable:
			unprivileged = append(unprivileged, text)
		case node.EnvoysOwn:
			own = append(own, text)
		case node.Unobstructed:
			unlisted = append(unlisted, text)
		}
	}
	for _, why := range []struct {
		ports       []string
		where, text string
	}{
		{unlisted, outboundField, "the node does not list these ports, so the sidecar does not listen there and the workload cannot call services at them; " +
			"add the ports to " + outboundField + " in the node metadata, or write all (isthmus bootstrap envoy --outbound)"},
		{unprivileged, "UNPRIVILEGED_POD", fmt.Sprintf("the sidecar cannot bind ports below %d, so the workload cannot call services at them; "+
			"call the services at another port, or let the sidecar bind low ports and remove UNPRIVILEGED_POD", push.FirstUnprivilegedPort)},
		{own, "", "Envoys use these ports themselves, so the workload cannot call services at them; give the services another port"},
	} {
		if len(why.ports) > 0 {
			list = append(list, output.Notice{Object: portsText(why.ports), Where: why.where, Text: why.text})
		}
	}
	return list
}

// isCalled reports whether a view has a service at a port that connections are made to.
func isCalled(v View, index *catalog.PortServices) bool {
	for s := range index.Visible(v.viewer()) {
		if port, _ := s.Port(index.Number); reach.TrafficOf(port) != reach.NotTCP && reach.HasCluster(s, index.Number) {
			return true
		}
	}
	return false
}

// portsText names some ports.
func portsText(ports []string) string {
	text, more := "ports ", ""
	if len(ports) == 1 {
		text = "port "
	}
	if n := len(ports) - mostPortsShown; n > 0 {
		ports, more = ports[:mostPortsShown], fmt.Sprintf(" and %d more", n)
	}
	return text + strings.Join(ports, ", ") + more
}
