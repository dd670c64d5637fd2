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
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// inbound are the ports that an Envoy serves for its own workload. It is part of the view, and
// does not contain the services: Envoys of workloads that serve the same ports in the same way
// share their resources.
type inbound struct {
	taken bool // false for Envoys without redirected inbound connections
	// others is the mode of mutual TLS of all ports but the listed ones, with redirection.
	others policy.Mutual
	ports  inboundPorts
	binds  explicitBinds // without redirection
}

// inboundPorts are the ports of a workload, each once, in order, with their kind of traffic and
// their mode of mutual TLS if they take it, as "80h,3306t,9000s,9001sp".
type inboundPorts string

// carried is the traffic of a port of a workload.
type carried struct {
	kind   reach.Traffic
	mutual policy.Mutual
}

// marks are the letters of the kinds of inbound traffic in inboundPorts.
var marks = [...]byte{reach.HTTP: 'h', reach.TCP: 't', reach.Detected: 's'}

// modeMarks are the letters of the modes of mutual TLS.
var modeMarks = [...]byte{policy.Plaintext: 0, policy.Permissive: 'p', policy.Strict: 's'}

// appendMarks appends the letters of the traffic of a port.
func (c carried) appendMarks(b []byte) []byte {
	b = append(b, marks[c.kind])
	if c.mutual != policy.Plaintext {
		b = append(b, modeMarks[c.mutual])
	}
	return b
}

// markedBy returns the traffic of one or two letters.
func markedBy(letters string) (c carried) {
	c.kind = reach.Traffic(slices.Index(marks[:], letters[0])) //nolint:gosec // one of three
	if len(letters) > 1 {
		c.mutual = policy.Mutual(slices.Index(modeMarks[:], letters[1])) //nolint:gosec // likewise
	}
	return c
}

func writePorts(kinds map[uint32]carried) inboundPorts {
	var b []byte
	for _, number := range slices.Sorted(maps.Keys(kinds)) {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = kinds[number].appendMarks(strconv.AppendUint(b, uint64(number), 10))
	}
	return inboundPorts(b)
}

func (p inboundPorts) all() iter.Seq2[uint32, carried] {
	return func(yield func(uint32, carried) bool) {
		for item := range strings.SplitSeq(string(p), ",") {
			if item == "" {
				return
			}
			digits := strings.IndexFunc(item, func(r rune) bool { return r < '0' || r > '9' })
			number, _ := names.ParsePort(item[:digits])
			if !yield(number, markedBy(item[digits:])) {
				return
			}
		}
	}
}

// inboundOf finds the ports at which a client's workload is an endpoint of services of the
// client's own namespace. If services disagree about a port, the owner of the port decides.
//
// The namespace is that of the client's certificate, if it has one. So a client with a false
// address learns only of workloads of its own namespace, and a service of another namespace
// does not change the protocol of a workload's port.
func inboundOf(w *state, c world.Client) inbound {
	switch p := node.ProxyOf(c); {
	case p.Role != node.Sidecar:
		return inbound{}
	case p.Mode != node.None:
		return redirected(w, c, p)
	case len(c.Proxy.Binds) == 0:
		return inbound{}
	default:
		return inbound{binds: writeBinds(c.Proxy.Binds, servedBy(w, c, p))}
	}
}

// redirected is the inbound part of an Envoy to which connections are redirected. Ports of no
// service are listed where their mode of mutual TLS is configured.
func redirected(w *state, c world.Client, p node.Proxy) inbound {
	mutual, ports := mutualAt(w, c), servedBy(w, c, p)
	for number, mode := range mutual.Exceptions() {
		if _, served := ports[number]; !served && !p.Reserved(number) {
			ports[number] = carried{reach.TCP, mode}
		}
	}
	return inbound{taken: true, ports: writePorts(ports), others: mutual.Of(0)}
}

// mutualAt returns the modes of mutual TLS of a client's workload. A client that proves no
// identity has no certificate, and takes plaintext.
func mutualAt(w *state, c world.Client) *policy.MutualPorts {
	if c.Account == "" {
		return nil
	}
	return w.settings.Mesh.In(c.Namespace)
}

// servedBy finds the ports of a client's workload and their traffic.
func servedBy(w *state, c world.Client, p node.Proxy) map[uint32]carried {
	if c.Namespace == "" {
		return map[uint32]carried{}
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
	kinds, mutual := make(map[uint32]carried, len(by)), mutualAt(w, c)
	for number, s := range by {
		kinds[number] = carried{reach.InboundTraffic(s), mutual.Of(number)}
	}
	return kinds
}

// audienceOf returns the keys through which changes find an Envoy or gRPC client: its
// namespace, and for sidecars the address of the workload.
func audienceOf(c world.Client) []string {
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
func findInboundListener(v View) (world.Subject, bool) {
	own := node.Proxy{Role: v.proxy.Role, Mode: v.proxy.Mode, Family: v.proxy.Family}
	return inboundListener{View{settings: v.settings, proxy: own, inbound: v.inbound}}, v.inbound.taken
}

// inboundListener is [names.VirtualInbound]. It depends on no service, and only on the numbers
// and kinds of traffic of the workload's ports: it hardly ever changes.
type inboundListener struct {
	view View // reduced to the fields that the listener depends on
}

// Slot implements [world.Subject].
func (l inboundListener) Slot() any { return l }

// Refers implements [world.Referrer].
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

// Encode implements [world.Subject].
func (l inboundListener) Encode() world.Encoded {
	p, s := l.view.proxy, l.view.settings.OrIstio()
	var ports []wire.InboundPort
	for number, kind := range l.view.inbound.ports.all() {
		ports = append(ports, inboundPort(number, kind))
	}
	return encode(names.VirtualInbound, wire.ListenerURL,
		wire.VirtualInbound(wire.Inbound{
			Address: p.Everywhere(), BothFamilies: p.AlsoIPv6(p.Everywhere()), Transparent: p.Mode == node.TProxy,
			Ports: ports, Others: l.view.inbound.others, ServerFirst: reach.ServerFirstPorts[:],
		}, s))
}

func inboundPort(number uint32, of carried) wire.InboundPort {
	p := wire.InboundPort{Number: number, Mutual: of.mutual}
	switch of.kind {
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

func findInboundCluster(v View, name string) (world.Subject, bool) {
	for b := range v.inbound.binds.served() {
		if names.InboundCluster(b.port()) == name {
			return bindCluster{b.port(), b.to}, true
		}
	}
	if !v.inbound.taken {
		return nil, false
	}
	if name == names.InboundPassthrough {
		return inboundCluster{0, v.resolver.Family}, true
	}
	digits, inward := strings.CutPrefix(name, "inbound|")
	digits, named := strings.CutSuffix(digits, "||")
	wanted, ok := names.ParsePort(digits)
	if !inward || !named || !ok {
		return nil, false
	}
	for number := range v.inbound.ports.all() {
		if number == wanted {
			return inboundCluster{number, v.resolver.Family}, true
		}
	}
	return nil, false
}

// inboundCluster is the cluster of a port of an Envoy's own workload, or with port 0 of any. It
// forwards to the original destination, so that it never changes.
type inboundCluster struct {
	port   uint32
	family node.Family
}

// Slot implements [world.Subject].
func (c inboundCluster) Slot() any { return c }

// Encode implements [world.Subject].
func (c inboundCluster) Encode() world.Encoded {
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

func findOwnCluster(w *state, v View, name string) (world.Subject, bool) {
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

// Slot implements [world.Subject].
func (c plainCluster) Slot() any { return c }

// Encode implements [world.Subject].
func (c plainCluster) Encode() world.Encoded {
	m := wire.BlackHoleCluster()
	if c == names.Passthrough {
		m = wire.PassthroughCluster()
	}
	return encode(m.GetName(), wire.ClusterURL, m)
}
