package envoy

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Conflicts returns what says for a service of the snapshot what it asks for and
// another one owns: Envoys get nothing of that, since they would reject the whole of it.
// It is found when it is asked for, so changes cost nothing. What is found of a port is
// kept until a service of the port changes. Once ctx has ended nothing more is looked for,
// and what is returned may lack some.
func (s *Settings) Conflicts(ctx context.Context, now *catalog.Snapshot) func(*catalog.Service) []catalog.Conflict {
	c := conflicts{ctx: ctx, deciders: map[workloadIn]map[uint32]catalog.InboundPort{}, now: now, domain: s.ClusterDomain, edge: s.Edge.Ports}
	if slices.ContainsFunc(s.Edge.Ports, func(p EdgePort) bool { return p.Protocol != edgeTCP }) {
		c.folded = foldedHosts(now)
	}
	return c.of
}

type conflicts struct {
	ctx    context.Context // of the one report that is made
	now    *catalog.Snapshot
	domain string
	edge   []EdgePort
	folded map[string][]*catalog.Service // those whose hosts differ in case alone
	// deciders are what was found of workloads that many services have.
	deciders map[workloadIn]map[uint32]catalog.InboundPort
}

func (c conflicts) of(s *catalog.Service) (list []catalog.Conflict) {
	for _, port := range s.Ports {
		if c.ctx.Err() != nil {
			return list
		}
		list = append(list, c.outbound(s, port.Number)...)
		list = append(list, c.inbound(s, port.Number)...)
	}
	for i := range c.edge {
		list = append(list, c.atEdge(s, &c.edge[i])...)
	}
	return list
}

// loss is what one service does not have because another has it.
type loss struct {
	want
	winner catalog.ServiceDefinition
	own    bool     // for workloads of the winner's namespace alone
	names  []string // of all that it asked for in this way
}

// goesToAnother says of what a service asks for that another has it.
const goesToAnother = "%s go to %s of namespace %s %s, and not to %s; %s"

// byHost says why no requests come where handshakes are expected.
const byHost = "%s are led on by the host in the handshake, as %s of namespace %s needs it %s, so no requests go to %s; %s"

// conflict says what a service does not have, and what to do about it.
func (l loss) conflict(loser catalog.ServiceDefinition) catalog.Conflict {
	where := "wherever both are seen"
	if l.own {
		where = "for workloads of that namespace"
	}
	return catalog.Conflict{
		Field: l.field, Kept: l.winner.Records[0].Record, Lost: loser.Records[0].Record,
		Reason: fmt.Sprintf(cmp.Or(l.reason, goesToAnother), l.asked+" "+strings.Join(l.names, ", "), l.winner.Key.Host, l.winner.Key.Namespace, where, loser.Key.Host, l.next),
	}
}

// conflictsIn is the key of what is kept with the index of a port: names are short in a
// domain, addresses are those in a cluster, and the edge may lead connections at the port
// to one host.
type conflictsIn struct {
	domain  string
	cluster string
	edge    string // the host; empty for none
}

type portConflicts map[catalog.ServiceKey][]catalog.Conflict

// outbound is what clients do not find of a service at a port, whatever cluster they are of.
func (c conflicts) outbound(s *catalog.Service, number uint32) (list []catalog.Conflict) {
	clusters := c.now.AddressClusters()
	if len(clusters) == 0 {
		return c.at(number, "")[s.Key]
	}
	seen := map[catalog.Conflict]struct{}{}
	for _, cluster := range clusters {
		for _, conflict := range c.at(number, cluster)[s.Key] {
			if _, twice := seen[conflict]; !twice {
				seen[conflict] = struct{}{}
				list = append(list, conflict)
			}
		}
	}
	return list
}

func (c conflicts) at(number uint32, cluster string) portConflicts {
	index := c.now.Port(number)
	if index == nil {
		return nil
	}
	key := conflictsIn{c.domain, cluster, c.edgeHost(number)}
	made, _ := index.DeriveOr(key, func(catalog.PortChange) (any, error) { return newPortConflicts(c.ctx, index, key) })
	found, _ := made.(portConflicts)
	return found
}

// edgeHost is the host of a TCP port of the edge; empty if there is no such port.
func (c conflicts) edgeHost(number uint32) string {
	for i := range c.edge {
		if p := &c.edge[i]; p.is(number) && p.Protocol == edgeTCP && len(p.Hosts) == 1 {
			return p.Hosts[0]
		}
	}
	return ""
}

// newPortConflicts looks at the services of a port by who owns addresses, as Envoys have
// them whose connections are redirected. Others have one listener for
// all services of a port, where even more is contested.
func newPortConflicts(ctx context.Context, index *catalog.PortServices, in conflictsIn) (portConflicts, error) {
	services := reachedAt(index)
	all := contest{
		in: in, index: index, claimed: map[string]*claimants{},
		secure: handshakesByAddress(services, index, in.cluster), blocks: blocksAsked(services, index.Number, in.cluster),
	}
	without := make([]map[string]bool, 0, len(services))
	for _, s := range services {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		without = append(without, all.enter(s))
	}
	all.sortNames()
	found := portConflicts{}
	for i, s := range services {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lost := all.lostBy(s, without[i])
		for w := range all.yieldsTo(s) { // whoever comes first
			all.rivals(w).judge(lost, w, s)
		}
		for _, l := range lost.list {
			found[s.Key] = append(found[s.Key], l.conflict(s))
		}
	}
	return found, nil
}

// defeats are what a service does not have, united by winner and kind.
type defeats struct {
	list []loss
	at   map[defeat]int // position in list
}

type defeat struct {
	winner       catalog.ServiceKey
	field, asked string
	own          bool
}

// judge adds what a service does not have because one of its rivals has it.
func (c *claimants) judge(lost *defeats, w want, s catalog.ServiceDefinition) {
	winner, found := c.winner(s, w)
	if !found {
		return
	}
	own := !w.yields && w.by.Owner("", winner, s) > 0
	is := defeat{winner.Key, w.field, w.asked, own}
	if i, known := lost.at[is]; known {
		lost.list[i].names = append(lost.list[i].names, w.name)
		return
	}
	if lost.at == nil {
		lost.at = map[defeat]int{}
	}
	lost.at[is] = len(lost.list)
	lost.list = append(lost.list, loss{w, winner, own, []string{w.name}})
}

// reachedAt lists the services that Envoys reach at a port, by who owns addresses.
func reachedAt(index *catalog.PortServices) (list []catalog.ServiceDefinition) {
	for s := range index.All() {
		if port, ok := s.Port(index.Number); ok && hasCluster(s, index.Number) && trafficOf(port) != notTCP && !(proxy{}).reserved(index.Number) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner("", a, b) })
	return list
}

// blocksAsked are the blocks that have a chain of their own.
func blocksAsked(services []catalog.ServiceDefinition, number uint32, cluster string) blockSet {
	b := blockSet{has: map[netip.Prefix]struct{}{}}
	lengths := map[int]struct{}{}
	for _, s := range services {
		if port, _ := s.Port(number); trafficOf(port) == httpOnly || trafficOf(port) == tlsOnly {
			continue
		}
		for block := range s.BlocksIn(cluster) {
			b.has[block], lengths[block.Bits()] = struct{}{}, struct{}{}
		}
	}
	b.bits = slices.SortedFunc(maps.Keys(lengths), func(x, y int) int { return cmp.Compare(y, x) })
	return b
}

// want is something that only one service can have in a view.
type want struct {
	key, only   string // only is the namespace that knows the service by it; empty for all
	field       string
	asked, name string // "requests at port 80 for", "reviews"
	next        string
	listener    string // where connections come in, if it is about them
	also        string // the key by which those lose to it that do not ask for the same
	reason      string // empty for the usual one
	by          catalog.Asked
	yields      bool // whoever else asks for it has it
}

const (
	otherHost    = "choose another host for it, or another port"
	otherAddress = "give it an address of its own, or another port"
	otherPort    = "have it called at another port of the edge"
)

// wantsOf yields what a service asks for at a port.
func wantsOf(s catalog.ServiceDefinition, index *catalog.PortServices, in conflictsIn, secure handshakesAt) iter.Seq[want] {
	return func(yield func(want) bool) {
		number := index.Number
		port, _ := s.Port(number)
		kind := trafficOf(port)
		if strings.EqualFold(in.edge, s.Key.Host) && (kind == tcpOnly || kind == sniffed) && s.Resolution != model.ResolutionNone && !yield(edgeWanted(number)) {
			return
		}
		if kind == httpOnly || kind == sniffed {
			for w := range domainsWanted(s, number, in) {
				if !yield(w) {
					return
				}
			}
		}
		if kind == httpOnly || (proxy{cluster: in.cluster}).apart(s, index) {
			return
		}
		for w := range connectionsWanted(s, number, kind, in.cluster, secure) {
			if !yield(w) {
				return
			}
		}
	}
}

func domainsWanted(s catalog.ServiceDefinition, number uint32, in conflictsIn) iter.Seq[want] {
	return func(yield func(want) bool) {
		name, home, short := shortName(s.Key.Host, in.domain)
		seen := map[string]bool{}
		foreign := s.ForeignIn(in.cluster)
		for d := range domainsOf(s, in.domain, in.cluster, short) {
			key := strings.ToLower(d)
			if seen[key] || key == anyDomain || foreign && isAddress(d) && d != s.Key.Host {
				continue
			}
			seen[key] = true
			w := want{key: "domain " + key, by: claim{domain: key}.asks(), field: fmt.Sprintf("ports[%d].domain", number), asked: fmt.Sprintf("requests at port %d for", number), name: d, next: otherHost}
			if short && d == name {
				w.only = home
			}
			if !yield(w) {
				return
			}
		}
	}
}

func connectionsWanted(s catalog.ServiceDefinition, number uint32, kind traffic, cluster string, secure handshakesAt) iter.Seq[want] {
	return func(yield func(want) bool) {
		name, whole := sniOf(s.Key.Host)
		shares := !s.ForeignIn(cluster) // addresses in another cluster are no shared ones
		for address := range addressesAsked(s, cluster) {
			shares = false
			if kind == tlsOnly && secure.several(address) {
				if !yield(handshakeWanted(name, address, number)) {
					return
				}
				continue
			}
			if !yield(addressWanted(address, number)) {
				return
			}
		}
		for block := range s.BlocksIn(cluster) {
			if shares = kind == tlsOnly; !shares && !yield(blockWanted(block, number)) {
				return
			}
		}
		switch {
		case !shares:
		case kind != tlsOnly:
			yield(want{key: "rest", listener: otherAddresses, field: fmt.Sprintf("ports[%d].addresses", number), asked: fmt.Sprintf("connections to port %d of", number), name: "addresses that no service has", next: otherAddress})
		case whole:
			yield(handshakeWanted(name, "", number))
		}
	}
}

// addressesAsked yields the addresses of its own that a service is to be reached at in a
// cluster. Nobody is owed the addresses that it has in another one.
func addressesAsked(s catalog.ServiceDefinition, cluster string) iter.Seq[string] {
	if s.ForeignIn(cluster) {
		return func(func(string) bool) {}
	}
	return s.OwnAddressesIn(cluster)
}

func addressWanted(address string, number uint32) want {
	return want{
		key: "address " + address, listener: address, field: fmt.Sprintf("ports[%d].addresses", number),
		asked: fmt.Sprintf("connections to port %d of", number), name: address, next: otherAddress,
	}
}

func blockWanted(block netip.Prefix, number uint32) want {
	return want{
		key: "block " + block.String(), listener: otherAddresses, field: fmt.Sprintf("ports[%d].addresses", number),
		asked: fmt.Sprintf("connections to port %d of", number), name: block.String(), next: otherAddress,
	}
}

func handshakeWanted(name, address string, number uint32) want {
	return want{
		key: "handshake " + name + " " + address, by: catalog.Name, listener: cmp.Or(address, otherAddresses), field: fmt.Sprintf("ports[%d].sni", number),
		asked: fmt.Sprintf("handshakes at port %d for", number), name: name, next: otherHost, also: "handshakes " + address,
	}
}

// handshakesAlone is what requests to an address lose where several services of TLS are
// distinguished by host.
func handshakesAlone(address string, number uint32) want {
	w := addressWanted(address, number)
	w.key, w.reason, w.yields = "handshakes "+address, byHost, true
	return w
}

func edgeWanted(number uint32) want {
	return want{
		key: "edge", field: fmt.Sprintf("edge.ports[%d]", number),
		asked: fmt.Sprintf("connections to port %d of", number), name: "the edge", next: otherPort,
	}
}
