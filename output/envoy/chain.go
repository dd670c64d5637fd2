package envoy

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
)

// layout is what a listener does with connections. It has no two chains of the same
// match, for Envoy would reject the listener for it.
type layout struct {
	routes  string // the route configuration of requests; empty if it takes none
	bySNI   []chain
	byBlock []chain
	other   string // the cluster of all other connections; empty for none of its own
	// affinity is that of the service of other.
	affinity model.Affinity
	cluster  string // whose addresses of services count
	loopback bool   // connections do not say which address they were meant for
	viewer   string // the namespace of the workloads
	// quiet says that nothing is read of a connection before a service is called, since that
	// speaks first.
	quiet bool

	owners listenerOwners
	lost   *[]loss // the things that services do not have; nil if nobody asks
}

// listenerOwners are the services that have something on a listener. They are zero if none has it.
type listenerOwners struct {
	names, blocks map[string]catalog.ServiceDefinition // by match
	other         catalog.ServiceDefinition
	quiet         catalog.ServiceDefinition // the first that needs connections not to be read
	reads         catalog.ServiceDefinition // the first that needs them to be read
}

// chain leads connections of one kind to a cluster.
type chain struct {
	match, cluster string
	affinity       model.Affinity // of the service
	crowded        bool           // blocks of addresses go before it
}

// mostInBlocks is how many pairs of a block of addresses and a host in the handshake a
// listener tells apart. The chain of each host lists all blocks.
const mostInBlocks = 10_000

// layoutOf arranges the services that are reached through a listener. Where several ask
// for one thing, the owner has it; the others are ignored.
func layoutOf(services []catalog.ServiceDefinition, number uint32, shared bool, v View) layout {
	return v.arrange(services, number, shared, nil)
}

// arrange is [layoutOf]. It adds to a list what services have lost to others.
func (v View) arrange(services []catalog.ServiceDefinition, number uint32, shared bool, lost *[]loss) layout {
	l := layout{cluster: v.proxy.cluster, loopback: v.proxy.mode == none, viewer: v.Namespace, lost: lost}
	services = slices.SortedFunc(slices.Values(services), func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner(l.viewer, a, b) })
	byHost := shared || handshakes(services, number) > 1
	for _, s := range services {
		l.take(s, number, shared, byHost)
	}
	return l
}

// take adds a service, unless an owner before it has what it asks for. One that speaks first
// would wait for ever where others have connections inspected.
func (l *layout) take(s catalog.ServiceDefinition, number uint32, shared, byHost bool) {
	port, _ := s.Port(number)
	kind := trafficOf(port)
	inspected := kind == httpOnly || kind == sniffed || kind == tlsOnly && byHost
	if l.turnsAway(s, port, inspected) {
		return
	}
	switch {
	case kind == httpOnly:
		l.takeRequests(s, number, shared)
	case inspected && kind == tlsOnly:
		if name, ok := names.SNI(s.Key.Host); ok {
			l.takeHandshakes(s, chain{match: name, cluster: names.Cluster(s.Key.Host, number), affinity: s.Traffic.Affinity})
		}
	default:
		if kind == sniffed {
			l.takeRequests(s, number, shared)
		}
		if took := l.takeConnections(s, number, shared); took && speaksFirst(port) && !l.quiet {
			l.quiet, l.owners.quiet = true, s
		}
	}
}

// lose notes that a service does not have a thing, because another has it.
func (l *layout) lose(s, winner catalog.ServiceDefinition, kind lossKind, name string) {
	if l.lost != nil {
		*l.lost = append(*l.lost, loss{loser: s, winner: winner, kind: kind, name: name})
	}
}

// takeHandshakes leads handshakes that say a name to a service. Names have another order
// than addresses, by which services come.
func (l *layout) takeHandshakes(s catalog.ServiceDefinition, c chain) {
	was, taken := l.owners.names[c.match]
	if taken && catalog.Name.Owner(l.viewer, was, s) < 0 {
		l.lose(s, was, lostHandshakes, c.match)
		return
	}
	if taken {
		l.lose(was, s, lostHandshakes, c.match)
		l.bySNI = slices.DeleteFunc(l.bySNI, func(o chain) bool { return o.match == c.match })
	}
	if !l.inspects() {
		l.owners.reads = s
	}
	if c.crowded = (len(l.bySNI)+1)*len(l.byBlock) > mostInBlocks; c.crowded {
		l.lose(s, l.owners.blocks[l.byBlock[0].match], lostInBlocks, c.match)
	}
	l.owners.names = withOwner(l.owners.names, c.match, s)
	l.bySNI = append(l.bySNI, c)
}

func withOwner(all map[string]catalog.ServiceDefinition, match string, s catalog.ServiceDefinition) map[string]catalog.ServiceDefinition {
	if all == nil {
		all = map[string]catalog.ServiceDefinition{}
	}
	all[match] = s
	return all
}

// turnsAway reports whether a service before it needs the opposite of what a port needs.
func (l *layout) turnsAway(s catalog.ServiceDefinition, port model.Port, inspected bool) bool {
	switch {
	case inspected && l.quiet:
		l.lose(s, l.owners.quiet, lostUnread, "")
	case speaksFirst(port) && l.inspects():
		l.lose(s, l.owners.reads, lostRead, "")
	default:
		return false
	}
	return true
}

// inspects reports whether something is read of connections before a service is called.
func (l *layout) inspects() bool { return l.routes != "" || len(l.bySNI) > 0 }

// handshakes counts the services that are kept apart by the host in the handshake.
func handshakes(services []catalog.ServiceDefinition, number uint32) (n int) {
	for _, s := range services {
		if port, _ := s.Port(number); trafficOf(port) == tlsOnly {
			n++
		}
	}
	return n
}

// takeConnections leads connections to a service by the address that they were meant
// for, or all that are left. A block of all addresses is like none.
func (l *layout) takeConnections(s catalog.ServiceDefinition, number uint32, shared bool) (took bool) {
	cluster := names.Cluster(s.Key.Host, number)
	rest := true
	if shared && !l.loopback {
		all := false
		for block := range s.BlocksIn(l.cluster) {
			if block.Bits() == 0 {
				all = true
				continue
			}
			rest = false
			took = l.takeBlock(s, chain{match: block.String(), cluster: cluster, affinity: s.Traffic.Affinity}) || took
		}
		rest = rest || all
	}
	switch {
	case !rest:
	case l.other == "":
		l.other, l.affinity, l.owners.other, took = cluster, s.Traffic.Affinity, s, true
	default:
		l.lose(s, l.owners.other, lostConnections, "")
	}
	return took
}

// takeBlock leads connections to a block of addresses to a service.
func (l *layout) takeBlock(s catalog.ServiceDefinition, c chain) bool {
	if owner, taken := l.owners.blocks[c.match]; taken {
		if owner.Key != s.Key {
			l.lose(s, owner, lostConnections, c.match)
		}
		return false
	}
	if (len(l.byBlock)+1)*len(l.bySNI) > mostInBlocks {
		l.lose(s, l.owners.names[l.bySNI[0].match], lostBlock, c.match)
		return false
	}
	l.owners.blocks = withOwner(l.owners.blocks, c.match, s)
	l.byBlock = append(l.byBlock, c)
	return true
}

// claims are the matches that a listener has already.
type claims map[string]struct{}

// add enters a chain, unless the owner of its match is another service.
func (taken claims) add(list *[]chain, c chain) bool {
	if _, other := taken[c.match]; other {
		return false
	}
	taken[c.match] = struct{}{}
	*list = append(*list, c)
	return true
}

// takeRequests has the listener route requests. One that all services share has the
// routes of all; the listener of an address those of one service.
func (l *layout) takeRequests(s catalog.ServiceDefinition, number uint32, shared bool) {
	if !l.inspects() {
		l.owners.reads = s
	}
	switch {
	case shared:
		l.routes = names.PortRoutes(number)
	case l.routes == "":
		l.routes = names.Listener(s.Key.Host, number)
	}
}

// clusters yields those that a layout leads to, of which one may be for connections that
// belong to no service.
func (l layout) clusters(unknown string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range slices.Concat(l.byBlock, l.bySNI) {
			if !yield(c.cluster) {
				return
			}
		}
		yield(cmp.Or(l.other, unknown))
	}
}

// inOrder is by match: equal services make equal bytes, in whichever order they came.
func inOrder(list []chain) []chain {
	return slices.SortedFunc(slices.Values(list), func(a, b chain) int { return strings.Compare(a.match, b.match) })
}
