package envoy

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// inbound are the ports that an Envoy serves for its own workload. It is part of the view, and
// does not contain the services: Envoys of workloads that serve the same ports in the same way
// share their resources.
type inbound struct {
	taken bool // false for Envoys without redirected inbound connections
	both  bool // with redirection: the workload has addresses of both families
	ports inboundPorts
	binds explicitBinds // without redirection
}

// inboundPorts are the ports of a workload, each once, in order, with their kind of traffic, as
// "80h,3306t,9000s".
type inboundPorts string

// marks are the letters of the kinds of inbound traffic in inboundPorts.
var marks = [...]byte{reach.HTTP: 'h', reach.TCP: 't', reach.Detected: 's'}

func writePorts(kinds map[uint32]reach.Traffic) inboundPorts {
	var b []byte
	for _, number := range slices.Sorted(maps.Keys(kinds)) {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendUint(b, uint64(number), 10), marks[kinds[number]])
	}
	return inboundPorts(b)
}

func (p inboundPorts) all() iter.Seq2[uint32, reach.Traffic] {
	return func(yield func(uint32, reach.Traffic) bool) {
		for item := range strings.SplitSeq(string(p), ",") {
			if item == "" {
				return
			}
			last := len(item) - 1
			number, _ := names.ParsePort(item[:last])
			if !yield(number, markedBy(item[last])) {
				return
			}
		}
	}
}

func markedBy(mark byte) reach.Traffic {
	return reach.Traffic(slices.Index(marks[:], mark)) //nolint:gosec // one of three
}

// inboundOf finds the ports at which a client's workload is an endpoint of services of the
// client's own namespace. If services disagree about a port, the owner of the port decides.
//
// The namespace is that of the client's certificate, if it has one. So a client with a false
// address learns only of workloads of its own namespace, and a service of another namespace
// does not change the protocol of a workload's port.
func inboundOf(w *state, c push.Client) inbound {
	switch p := node.ProxyOf(c); {
	case p.Role != node.Sidecar:
		return inbound{}
	case p.Mode != node.None:
		return inbound{taken: true, both: p.Family == node.DualStack, ports: writePorts(servedBy(w, c, p))}
	case len(c.Proxy.Binds) == 0:
		return inbound{}
	default:
		return inbound{binds: writeBinds(c.Proxy.Binds, servedBy(w, c, p))}
	}
}

// servedBy finds the ports of a client's workload and their kind of traffic.
func servedBy(w *state, c push.Client, p node.Proxy) map[uint32]reach.Traffic {
	if c.Namespace == "" {
		return nil
	}
	by := map[uint32]catalog.InboundPort{}
	for _, address := range c.Addresses {
		for s := range w.snapshot.ServedAt(c.Namespace, catalog.WorkloadAddress{Network: c.Network, Address: address}) {
			if s.Target == 0 || s.Target > names.HighestPort || p.Reserved(s.Target) || reach.InboundTraffic(s) == reach.NotTCP {
				continue
			}
			if first, taken := by[s.Target]; !taken || reach.DecidesInbound(s, first) {
				by[s.Target] = s
			}
		}
	}
	kinds := make(map[uint32]reach.Traffic, len(by))
	for number, s := range by {
		kinds[number] = reach.InboundTraffic(s)
	}
	return kinds
}

// audienceOf returns the keys through which changes find an Envoy or gRPC client: its
// namespace, and for sidecars the address of the workload.
func audienceOf(c push.Client) []string {
	keys := []string{c.Namespace}
	if p := node.ProxyOf(c); c.Kind != reach.KindEnvoy || p.Role != node.Sidecar || p.Mode == node.None && len(c.Proxy.Binds) == 0 {
		return keys
	}
	for _, text := range c.Addresses {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		at := catalog.WorkloadAddress{Address: ip.Unmap().String()}
		keys = append(keys, workloadKey(at))
		if at.Network = c.Network; at.Network != "" { // else the two are one
			keys = append(keys, workloadKey(at))
		}
	}
	return keys
}

// workloadKey is no namespace's name.
func workloadKey(at catalog.WorkloadAddress) string { return "@" + at.Network + "/" + at.Address }

// mostReviewed bounds the workloads that a step names. Beyond that it is cheaper to compare all
// clients once than to find each of them.
const mostReviewed = 4096

// reviewedWorkloads returns the audience keys of the workloads that may serve other ports after
// a change; all is set if they are too many.
func reviewedWorkloads(c catalog.Change) (keys []string, all bool) {
	found := map[catalog.WorkloadAddress]struct{}{}
	for _, service := range c.Services {
		for at := range service.Workloads() {
			found[at] = struct{}{}
			if len(found) > mostReviewed {
				return nil, true
			}
		}
	}
	for at := range found {
		keys = append(keys, workloadKey(at))
	}
	slices.Sort(keys)
	return keys, false
}

// findInboundListener returns the listener of an Envoy's own workload.
func findInboundListener(v View) (push.Subject, bool) {
	own := node.Proxy{Role: v.proxy.Role, Mode: v.proxy.Mode, Family: v.proxy.Family}
	return inboundListener{View{settings: v.settings, proxy: own, inbound: v.inbound}}, v.inbound.taken
}

// inboundListener is [names.VirtualInbound]. It depends on no service, and only on the numbers
// and kinds of traffic of the workload's ports: it hardly ever changes.
type inboundListener struct {
	view View // reduced to the fields that the listener depends on
}

// Slot implements [push.Subject].
func (l inboundListener) Slot() any { return l }

// Refers implements [push.Referrer].
func (l inboundListener) Refers(to string) iter.Seq[string] {
	if to != wire.ClusterURL {
		return nothing
	}
	list := []string{names.BlackHole, names.InboundPassthrough}
	for number := range l.view.inbound.ports.all() {
		list = append(list, names.InboundCluster(number))
	}
	return slices.Values(list)
}

// Encode implements [push.Subject].
func (l inboundListener) Encode() push.Encoded {
	p, s := l.view.proxy, l.view.settings.OrIstio()
	var ports []wire.InboundPort
	for number, kind := range l.view.inbound.ports.all() {
		ports = append(ports, inboundPort(number, kind))
	}
	return encode(names.VirtualInbound, wire.ListenerURL,
		wire.VirtualInbound(p.Everywhere(), p.AlsoIPv6(p.Everywhere()), p.Mode == node.TProxy, ports, reach.ServerFirstPorts[:], s))
}

func inboundPort(number uint32, kind reach.Traffic) wire.InboundPort {
	p := wire.InboundPort{Number: number}
	switch kind {
	case reach.HTTP:
		p.Carries = wire.Requests
	case reach.Detected:
		p.Carries = wire.Either
	default: // connections
	}
	return p
}

// Addresses that an Envoy calls its workload from. The rules that redirect connections
// let those from them pass, so that they do not come back to the Envoy.
const (
	sourceIPv4 = "127.0.0.6"
	sourceIPv6 = "::6"
)

// inboundClusterNames lists the clusters that lead to an Envoy's own workload.
func inboundClusterNames(v View) (list []string) {
	for b := range v.inbound.binds.served() {
		list = append(list, names.InboundCluster(b.port()))
	}
	if !v.inbound.taken {
		return list
	}
	list = append(list, names.InboundPassthrough)
	for number := range v.inbound.ports.all() {
		list = append(list, names.InboundCluster(number))
	}
	return list
}

func findInboundCluster(v View, name string) (push.Subject, bool) {
	for b := range v.inbound.binds.served() {
		if names.InboundCluster(b.port()) == name {
			return bindCluster{b.port(), b.to}, true
		}
	}
	if !v.inbound.taken {
		return nil, false
	}
	if name == names.InboundPassthrough {
		return inboundCluster{0, workloadFamily(v)}, true
	}
	digits, inward := strings.CutPrefix(name, "inbound|")
	digits, named := strings.CutSuffix(digits, "||")
	wanted, ok := names.ParsePort(digits)
	if !inward || !named || !ok {
		return nil, false
	}
	for number := range v.inbound.ports.all() {
		if number == wanted {
			return inboundCluster{number, workloadFamily(v)}, true
		}
	}
	return nil, false
}

// workloadFamily is the family of the addresses of an Envoy's own workload.
func workloadFamily(v View) node.Family {
	if v.inbound.both {
		return node.DualStack
	}
	return v.resolver.Family
}

// inboundCluster is the cluster of a port of an Envoy's own workload, or with port 0 of any. It
// forwards to the original destination, so that it never changes.
type inboundCluster struct {
	port   uint32
	family node.Family
}

// Slot implements [push.Subject].
func (c inboundCluster) Slot() any { return c }

// Encode implements [push.Subject].
func (c inboundCluster) Encode() push.Encoded {
	m := wire.InboundCluster(c.port, sourcesOf(c.family)...)
	return encode(m.GetName(), wire.ClusterURL, m)
}

// sources lists the addresses that an Envoy calls its workload from, by the family of the
// workload's addresses.
func sourcesOf(f node.Family) []string {
	switch f {
	case node.IPv6:
		return []string{sourceIPv6}
	case node.DualStack:
		return []string{sourceIPv4, sourceIPv6}
	default:
		return []string{sourceIPv4}
	}
}

// plainClusterNames yields the clusters that stand for no service.
func plainClusterNames(_ *state, v View) iter.Seq[string] {
	return slices.Values(append([]string{names.BlackHole, names.Passthrough}, inboundClusterNames(v)...))
}

// ownClusterNames yields the clusters of [plainClusterNames] and of a gateway.
func ownClusterNames(w *state, v View) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, names := range []iter.Seq[string]{plainClusterNames(w, v), enteredNames(w, v)} {
			for name := range names {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func findOwnCluster(w *state, v View, name string) (push.Subject, bool) {
	if entered, ok := findEntered(w, v, ClusterType, name); ok {
		return entered, true
	}
	if own, ok := findInboundCluster(v, name); ok {
		return own, true
	}
	return plainCluster(name), name == names.BlackHole || name == names.Passthrough
}

// plainCluster drops connections, or forwards them to their original destination.
type plainCluster string

// Slot implements [push.Subject].
func (c plainCluster) Slot() any { return c }

// Encode implements [push.Subject].
func (c plainCluster) Encode() push.Encoded {
	m := wire.BlackHoleCluster()
	if c == names.Passthrough {
		m = wire.PassthroughCluster()
	}
	return encode(m.GetName(), wire.ClusterURL, m)
}
