package reach

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
)

// Layout is how a listener routes connections. No two chains have the same match:
// Envoy would reject the listener.
type Layout struct {
	Routes  string // the route configuration of requests; empty if it takes none
	BySNI   []Chain
	ByBlock []Chain
	Other   string // the cluster of all other connections; empty for none of its own
	// Affinity is that of the service of Other.
	Affinity model.Affinity
	client   Client
	number   uint32
	// quiet means that no listener filter reads from a connection, since the server speaks
	// first.
	quiet bool

	owners listenerOwners
	lost   *[]Loss // the conflicts that services lose; nil if they are not collected
}

// listenerOwners are the services that own a match of a listener; zero without an owner.
type listenerOwners struct {
	blocks map[string]catalog.ServiceDefinition // by match
	named  catalog.ServiceDefinition            // the first of those in handshakes
	other  catalog.ServiceDefinition
	quiet  catalog.ServiceDefinition // the first that needs connections not to be read
	reads  catalog.ServiceDefinition // the first that needs them to be read
}

// Chain leads connections of one kind to a cluster.
type Chain struct {
	Match, Cluster string
	Affinity       model.Affinity // of the service
	Crowded        bool           // blocks of addresses go before it
}

// MostInBlocks is how many pairs of a block of addresses and a host in the handshake a
// listener distinguishes. The chain of each host lists all blocks.
const MostInBlocks = 10_000

// LayoutOf arranges the services that are reached through a listener. If several ask for the
// same match, the owner gets it; the others are ignored. The services of the listener of an address come in
// the order of [AtAddress].
func LayoutOf(services []catalog.ServiceDefinition, number uint32, shared bool, c Client) Layout {
	return Arrange(c, services, number, shared, nil)
}

// Arrange is [LayoutOf], and adds the conflicts that services lose to a list.
func Arrange(c Client, services []catalog.ServiceDefinition, number uint32, shared bool, lost *[]Loss) Layout {
	l := Layout{client: c, number: number, lost: lost}
	if shared {
		services = slices.SortedFunc(slices.Values(services), func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner(c.Namespace, a, b) })
	}
	byHost := shared || handshakes(services, number) > 1
	for _, s := range services {
		l.take(s, number, shared, byHost)
	}
	return l
}

// take adds a service, unless an earlier owner has its match. A service that speaks first
// would wait for ever if other services have connections inspected.
func (l *Layout) take(s catalog.ServiceDefinition, number uint32, shared, byHost bool) {
	port, _ := s.Port(number)
	kind := TrafficOf(port)
	inspected := kind == HTTP || kind == Detected || kind == TLS && byHost
	if l.turnsAway(s, port, inspected) {
		return
	}
	switch {
	case kind == HTTP:
		l.takeRequests(s, number, shared)
	case inspected && kind == TLS:
		if names.IsSNI(s.Key.Host) {
			l.takeHandshakes(s, Chain{Match: s.Key.Host, Cluster: names.Cluster(s.Key.Host, number), Affinity: s.Traffic.Affinity})
		}
	default:
		if kind == Detected {
			l.takeRequests(s, number, shared)
		}
		if took := l.takeConnections(s, number, shared); took && ServerFirst(port) && !l.quiet {
			l.quiet, l.owners.quiet = true, s
		}
	}
}

// lose notes a conflict that a service loses to another.
func (l *Layout) lose(s, winner catalog.ServiceDefinition, kind LossKind, name string) {
	if l.lost != nil {
		*l.lost = append(*l.lost, Loss{Loser: s, Winner: winner, Kind: kind, Name: name})
	}
}

// takeHandshakes leads handshakes that say a name to a service. Names have another order
// than addresses, by which services come.
func (l *Layout) takeHandshakes(s catalog.ServiceDefinition, c Chain) {
	if !l.inspects() {
		l.owners.reads = s
	}
	if c.Crowded = (len(l.BySNI)+1)*len(l.ByBlock) > MostInBlocks; c.Crowded {
		l.lose(s, l.owners.blocks[l.ByBlock[0].Match], LostInBlocks, c.Match)
	}
	if len(l.BySNI) == 0 {
		l.owners.named = s
	}
	l.BySNI = append(l.BySNI, c)
}

// turnsAway reports whether an earlier service needs the opposite of a port: connections that
// are inspected, or that are not.
func (l *Layout) turnsAway(s catalog.ServiceDefinition, port model.Port, inspected bool) bool {
	switch {
	case inspected && l.quiet:
		l.lose(s, l.owners.quiet, LostUnread, "")
	case ServerFirst(port) && l.inspects():
		l.lose(s, l.owners.reads, LostRead, "")
	default:
		return false
	}
	return true
}

// inspects reports whether listener filters read from connections.
func (l *Layout) inspects() bool { return l.Routes != "" || len(l.BySNI) > 0 }

// handshakes counts the services that are distinguished by SNI.
func handshakes(services []catalog.ServiceDefinition, number uint32) (n int) {
	for _, s := range services {
		if port, _ := s.Port(number); TrafficOf(port) == TLS {
			n++
		}
	}
	return n
}

// takeConnections routes connections to a service by their original destination, or all
// that no other chain matches. A block of all addresses is like none.
func (l *Layout) takeConnections(s catalog.ServiceDefinition, number uint32, shared bool) (took bool) {
	cluster := names.Cluster(s.Key.Host, number)
	rest := true
	if shared && l.client.Proxy.Mode != node.None {
		all, blocks := false, false
		for block := range s.BlocksIn(l.client.Proxy.Cluster) {
			blocks = true
			if block.Bits() == 0 {
				all = true
				continue
			}
			took = l.takeBlock(s, Chain{Match: block.String(), Cluster: cluster, Affinity: s.Traffic.Affinity}) || took
		}
		rest = all || !blocks && takesRest(l.client, s, number)
	}
	switch {
	case !rest:
	case l.Other == "":
		l.Other, l.Affinity, l.owners.other, took = cluster, s.Traffic.Affinity, s, true
		if port, _ := s.Port(number); shared && takesAll(l.client, s, port) {
			l.lose(s, s, TakesAll, "")
		}
	default:
		l.lose(s, l.owners.other, LostConnections, "")
	}
	return took
}

// takeBlock leads connections to a block of addresses to a service.
func (l *Layout) takeBlock(s catalog.ServiceDefinition, c Chain) bool {
	if owner, taken := l.owners.blocks[c.Match]; taken {
		if owner.Key != s.Key {
			l.lose(s, owner, LostConnections, c.Match)
		}
		return false
	}
	if (len(l.ByBlock)+1)*len(l.BySNI) > MostInBlocks {
		l.lose(s, l.owners.named, LostBlock, c.Match)
		return false
	}
	if l.owners.blocks == nil {
		l.owners.blocks = map[string]catalog.ServiceDefinition{}
	}
	l.owners.blocks[c.Match] = s
	l.ByBlock = append(l.ByBlock, c)
	return true
}

// takeRequests has the listener route requests. One that all services share has the
// routes of all; the listener of an address those of one service.
func (l *Layout) takeRequests(s catalog.ServiceDefinition, number uint32, shared bool) {
	if !l.inspects() {
		l.owners.reads = s
	}
	switch {
	case shared:
		l.Routes = names.PortRoutes(number)
	case l.Routes == "":
		l.Routes = names.Listener(s.Key.Host, number)
	}
}

// Rest returns the service with the connections to addresses that no service has. They go on to these
// addresses if there is none.
func (l Layout) Rest() (s catalog.ServiceDefinition, ok bool) {
	if s = l.owners.other; l.Other == "" {
		return s, false
	}
	port, _ := s.Port(l.number)
	return s, s.ResolutionAt(l.number) != model.ResolutionNone || cmp.Or(port.TargetPort, l.number) != l.number
}

// Clusters yields those that a layout leads to, of which one may be for connections that
// belong to no service.
func (l Layout) Clusters(unknown string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range slices.Concat(l.ByBlock, l.BySNI) {
			if !yield(c.Cluster) {
				return
			}
		}
		yield(cmp.Or(l.Other, unknown))
	}
}

// InOrder is by match: equal services make equal bytes, in whichever order they came.
func InOrder(list []Chain) []Chain {
	return slices.SortedFunc(slices.Values(list), func(a, b Chain) int { return strings.Compare(a.Match, b.Match) })
}

// Loss is a thing that one service does not have because another owns it.
type Loss struct {
	Loser, Winner catalog.ServiceDefinition
	Kind          LossKind
	Name          string // of the thing; empty for all of a listener
}

// LossKind is the kind of a conflict that a service loses.
type LossKind uint8

// The kinds of losses.
const (
	LostConnections  LossKind = iota // those to an address, to a block, or all that are left
	LostToHandshakes                 // requests to an address, where handshakes are led on by host
	LostUnread                       // all that have to be read, where a server speaks first
	LostRead                         // all, since its server speaks first where connections are read
	LostInBlocks                     // handshakes that name its host, in blocks of addresses
	LostBlock                        // a block, since there are too many hosts in handshakes
	LostRequests                     // those that name a domain
	LostInstances                    // listeners at instances
	TakesAll                         // nothing: it has connections that are for nobody
	LostAddressed                    // connections to the addresses of its endpoints, which are names
)

// Contested reports whether the winner has the thing that the loser asks for. Otherwise a limit
// leaves no room for the loser, and the winner is one of many that fill it.
func (l Loss) Contested() bool {
	return l.Kind != LostInBlocks && l.Kind != LostBlock && l.Kind != LostInstances
}

// Asked returns the address or the name that a loss is about, to workloads of a cluster.
func (l Loss) Asked(cluster string) catalog.Asked {
	if asked := AskedBy(cluster, l.Name); l.Kind == LostRequests || asked != catalog.Name {
		return asked
	}
	return catalog.Address
}

// Destinations find the clusters to which a listener leads connections.
type Destinations struct {
	Layout
	bySNI map[string]Chain
}

// Destinations returns those of the layout.
func (l Layout) Destinations() Destinations {
	d := Destinations{l, map[string]Chain{}}
	for _, c := range l.BySNI {
		d.bySNI[c.Match] = c
	}
	return d
}

// At returns the cluster of a connection to an address. One that names no service in a handshake
// goes to that with the smallest block that contains the address.
func (d Destinations) At(address netip.Addr, sni string) string {
	cluster, smallest := d.Other, -1
	for _, c := range d.ByBlock {
		block := netip.MustParsePrefix(c.Match)
		if block.Contains(address) && block.Bits() > smallest {
			smallest, cluster = block.Bits(), c.Cluster
		}
	}
	if c, ok := d.bySNI[sni]; ok && (smallest < 0 || !c.Crowded) {
		return c.Cluster
	}
	return cluster
}

// IsAddress reports whether an authority is an address.
func IsAddress(authority string) bool {
	_, err := netip.ParseAddr(strings.Trim(authority, "[]"))
	return err == nil
}

// AskedBy returns the address or the name that the authority of a request means to workloads of a cluster.
func AskedBy(cluster, authority string) catalog.Asked {
	if IsAddress(authority) {
		return catalog.At(cluster, strings.Trim(authority, "[]"))
	}
	return catalog.Name
}
