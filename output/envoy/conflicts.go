package envoy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
)

type conflicts struct {
	ctx    context.Context // of the one report that is made
	now    *catalog.Snapshot
	domain string
	edge   []policy.EdgePort
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

// outbound lists the conflicts at a port, for clients of every cluster.
func (c conflicts) outbound(s *catalog.Service, number uint32) (list []catalog.Conflict) {
	clusters := c.now.AddressClusters()
	if len(clusters) == 0 {
		clusters = []string{""}
	}
	for _, cluster := range clusters {
		for _, conflict := range c.at(number, node.Proxy{Domain: c.domain, Cluster: cluster})[s.Key] {
			if !slices.Contains(list, conflict) {
				list = append(list, conflict)
			}
		}
	}
	return list
}

// portConflicts are the conflicts at a port.
type portConflicts map[catalog.ServiceKey][]catalog.Conflict

// conflictsOf is the key of the conflicts at some sidecars, which are kept with the index of
// a port.
type conflictsOf node.Proxy

// at returns the conflicts at a port of some sidecars.
func (c conflicts) at(number uint32, p node.Proxy) portConflicts {
	index := c.now.Port(number)
	if index == nil || p.Reserved(number) {
		return nil
	}
	made, _ := index.DeriveOr(conflictsOf(p), func(catalog.PortChange) (any, error) {
		l := portLosses{ctx: c.ctx, index: index, proxy: p, worst: map[lostThing]reach.Loss{}}
		l.atListeners()
		if p.Mode != node.None {
			l.ofNames()
		}
		return l.conflicts(), c.ctx.Err()
	})
	found, _ := made.(portConflicts)
	return found
}

// nobody is a namespace without services, that none is exported to by its name.
const nobody = "\x00"

// portLosses collects the things that services of a port do not have.
type portLosses struct {
	ctx   context.Context
	index *catalog.PortServices
	proxy node.Proxy
	worst map[lostThing]reach.Loss // of each thing, the loss to the first owner
}

// lostThing is one thing that a service asks for.
type lostThing struct {
	loser catalog.ServiceKey
	kind  reach.LossKind
	name  string
}

// add enters a loss at the listener of an address, or, if that is empty, at the one that
// services share.
func (l portLosses) add(one reach.Loss, address string) {
	switch {
	case one.Name != "":
	case address != "":
		one.Name = address
	case l.proxy.Mode == node.None:
		one.Name = "loopback with INTERCEPTION_MODE NONE"
	case one.Kind == reach.LostConnections:
		one.Name = "addresses that no service has"
	default:
		one.Name = "addresses without a listener of their own"
	}
	thing := lostThing{one.Loser.Key, one.Kind, one.Name}
	if was, known := l.worst[thing]; !known || one.Kind.Asked(one.Name).Owner("", one.Winner, was.Winner) < 0 {
		l.worst[thing] = one
	}
}

// client is a client of a namespace.
func (l portLosses) client(namespace string) reach.Client {
	return reach.Client{Viewer: catalog.Viewer{Namespace: namespace}, Proxy: l.proxy}
}

// viewers lists the namespaces that may see others of some services than everybody else does,
// or that own some of them, and first one that is like everybody else.
func (l portLosses) viewers(services []catalog.ServiceDefinition) []string {
	some := map[string]struct{}{}
	for _, s := range services {
		for alike := range l.index.Between(s.Key.Host, s.Key.Host+"\x00") {
			some[alike.Key.Namespace] = struct{}{}
			for to := range alike.ExportTo.All() {
				if to != "*" && to != "~" && to != "." {
					some[to] = struct{}{}
				}
			}
		}
	}
	return append([]string{nobody}, slices.Sorted(maps.Keys(some))...)
}

// atListeners lays out every listener at which several services meet, for each namespace.
func (l portLosses) atListeners() {
	shared, apart := []catalog.ServiceDefinition{}, map[string][]catalog.ServiceDefinition{}
	for s := range l.index.All() {
		port, ok := s.Port(l.index.Number)
		if !ok || reach.TrafficOf(port) == reach.NotTCP || !reach.HasCluster(s, l.index.Number) {
			continue
		}
		if reach.SharesListener(l.proxy, s, l.index) {
			shared = append(shared, s)
		}
		if l.proxy.Mode != node.None && !reach.AtEndpoints(l.proxy, s, l.index) && !s.ForeignIn(l.proxy.Cluster) {
			for address := range s.OwnAddressesIn(l.proxy.Cluster) {
				apart[address] = append(apart[address], s)
			}
		}
	}
	for address, services := range apart {
		l.each(services, func(v reach.Client) {
			for _, one := range reach.CallableAt(v, l.index, address).Losses(v) {
				l.add(one, address)
			}
		})
	}
	// In the order for workloads of no namespace, which is nearly that of each.
	shared = slices.SortedFunc(slices.Values(l.doubtful(shared)), func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner("", a, b) })
	everywhere := make([]bool, len(shared))
	for i, s := range shared {
		everywhere[i] = l.isSeenEverywhere(s)
	}
	var lost []reach.Loss
	seen := make([]catalog.ServiceDefinition, 0, len(shared))
	l.each(shared, func(v reach.Client) {
		lost, seen = lost[:0], seen[:0]
		for i, s := range shared {
			if everywhere[i] || l.index.Means(v.Viewer, s) {
				seen = append(seen, s)
			}
		}
		reach.Arrange(v, seen, l.index.Number, true, &lost)
		for _, one := range lost {
			if one.Kind != reach.LostConnections || !one.Loser.ForeignIn(l.proxy.Cluster) { // nobody is owed an address in another cluster
				l.add(one, "")
			}
		}
	})
}

// isSeenEverywhere reports whether every viewer means a service by its host.
func (l portLosses) isSeenEverywhere(s catalog.ServiceDefinition) bool {
	for alike := range l.index.Between(s.Key.Host, s.Key.Host+"\x00") {
		if alike.Key != s.Key {
			return false
		}
	}
	return s.ExportTo.Len() == 0 || slices.Contains(s.ExportTo.Slice(), "*")
}

// each has the services of a listener looked at by each namespace, if there are several.
func (l portLosses) each(services []catalog.ServiceDefinition, look func(reach.Client)) {
	if len(services) < 2 {
		return
	}
	for _, namespace := range l.viewers(services) {
		if l.ctx.Err() != nil {
			return
		}
		look(l.client(namespace))
	}
}

// doubtful are the services of a listener that may lose something there, and those that may
// have it. The rest, which is nearly all, changes nothing: requests, which are routed, and
// handshakes for a host of one service. It does where a server speaks first.
func (l portLosses) doubtful(shared []catalog.ServiceDefinition) []catalog.ServiceDefinition {
	hosts, blocks := map[string]int{}, 0
	for _, s := range shared {
		port, _ := s.Port(l.index.Number)
		if reach.ServerFirst(port) {
			return shared
		}
		if name, ok := names.SNI(s.Key.Host); ok && reach.TrafficOf(port) == reach.TLS {
			hosts[name]++
		}
		for range s.BlocksIn(l.proxy.Cluster) {
			blocks++
		}
	}
	return slices.DeleteFunc(shared, func(s catalog.ServiceDefinition) bool {
		port, _ := s.Port(l.index.Number)
		name, _ := names.SNI(s.Key.Host)
		kind := reach.TrafficOf(port)
		return kind == reach.HTTP || kind == reach.TLS && hosts[name] < 2 && blocks*len(hosts) <= reach.MostInBlocks
	})
}

// ofNames finds the domains of requests that services lose to others. In routes a domain has
// the first of the services that claim it and are seen.
func (l portLosses) ofNames() {
	all, several := map[string][]spelled{}, map[string]struct{}{}
	in := vhost.Key{Domain: l.proxy.Domain, Cluster: l.proxy.Cluster}
	for s := range l.index.All() {
		port, ok := s.Port(l.index.Number)
		if kind := reach.TrafficOf(port); !ok || !reach.HasCluster(s, l.index.Number) || kind != reach.HTTP && kind != reach.Detected {
			continue
		}
		h := vhost.NewHost(s, l.index.Number, in)
		for _, domain := range h.DomainsFor(h.Home != "") {
			c := h.ClaimTo(domain)
			if list := all[c.Domain]; len(list) > 0 && list[0].By.Key.Host != s.Key.Host {
				several[c.Domain] = struct{}{}
			}
			all[c.Domain] = append(all[c.Domain], spelled{c, domain})
		}
	}
	for domain := range several {
		l.ofDomain(all[domain])
	}
}

// spelled is a claim with the domain as the service spells it.
type spelled struct {
	vhost.Claim
	as string
}

// ofDomain finds the services that lose a domain.
func (l portLosses) ofDomain(claims []spelled) {
	services := make([]catalog.ServiceDefinition, len(claims))
	for i, c := range claims {
		services[i] = c.By
	}
	l.each(services, func(v reach.Client) {
		var owner *spelled
		seen := func(yield func(*spelled) bool) {
			for i := range claims {
				c := &claims[i]
				if (!c.Own || c.Home == v.Namespace) && l.index.Means(v.Viewer, c.By) && !yield(c) {
					return
				}
			}
		}
		for c := range seen {
			if owner == nil || cmp.Or(vhost.CompareBool(c.Foreign, owner.Foreign), c.Asks().Owner(v.Namespace, c.By, owner.By)) < 0 {
				owner = c
			}
		}
		for c := range seen {
			if c.By.Key != owner.By.Key && !c.Foreign {
				l.add(reach.Loss{Loser: c.By, Winner: owner.By, Kind: reach.LostRequests, Name: c.as}, "")
			}
		}
	})
}

// conflicts unites the losses of each service to one owner.
func (l portLosses) conflicts() portConflicts {
	type united struct {
		loser, winner catalog.ServiceKey
		kind          reach.LossKind
		own           bool
	}
	all, lost := map[united]reach.Loss{}, map[united][]string{}
	for thing, one := range l.worst {
		own := one.Kind.Asked(one.Name).Owner("", one.Winner, one.Loser) > 0
		u := united{thing.loser, one.Winner.Key, one.Kind, own}
		all[u], lost[u] = one, append(lost[u], one.Name)
	}
	found := portConflicts{}
	for u, one := range all {
		slices.Sort(lost[u])
		found[u.loser] = append(found[u.loser], conflictOf(one, l.index.Number, lost[u], u.own))
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b catalog.Conflict) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason))
		})
	}
	return found
}

const (
	otherHost    = "choose another host for it, or another port"
	otherAddress = "give it an address of its own, or another port"
	otherPort    = "give one of the two another port"
)

// lossTexts are the field and the reason of a conflict over each kind of loss. Reasons have
// the port, the names, the owner's host and namespace, the views, and the loser's host.
var lossTexts = [...]struct{ field, reason string }{
	reach.LostConnections:  {"ports[%d].addresses", "connections to port %d of %s go to %s of namespace %s %s, and not to %s; " + otherAddress},
	reach.LostHandshakes:   {"ports[%d].sni", "handshakes at port %d for %s go to %s of namespace %s %s, and not to %s; " + otherHost},
	reach.LostToHandshakes: {"ports[%d].addresses", "connections to port %d of %s are led on by the host in the handshake, as %s of namespace %s needs it %s, so no requests go to %s; " + otherAddress},
	reach.LostUnread:       {"ports[%d].protocol", "connections to port %d of %s are not read, since the server of %s of namespace %s may speak first %s, so none go to %s; " + otherPort},
	reach.LostRead:         {"ports[%d].protocol", "connections to port %d of %s are read, to find those of %s of namespace %s %s, so none go to %s, whose server may speak first; " + otherPort},
	reach.LostInBlocks:     {"ports[%d].sni", "handshakes at port %d for %s go to %s of namespace %s in its blocks of addresses %s, and not to %s, for a listener tells 10,000 pairs of block and host apart; " + otherPort},
	reach.LostBlock:        {"ports[%d].addresses", "connections to port %d of %s are led on by the host in the handshake, as %s of namespace %s needs it %s, and not to %s, for a listener tells 10,000 pairs of block and host apart; " + otherPort},
	reach.LostRequests:     {"ports[%d].domain", "requests at port %d for %s go to %s of namespace %s %s, and not to %s; " + otherHost},
	reach.LostAtEdge:       {"edge.ports[%d].hosts", "calls of port %d of the edge for %s go to %s of namespace %s %s, and not to %s; " + otherHost},
}

// conflict says what a service does not have, and what to do about it. Own says that it is
// for workloads of the owner's namespace alone.
func conflictOf(l reach.Loss, number uint32, names []string, own bool) catalog.Conflict {
	where := "wherever both are seen"
	if own {
		where = "for workloads of that namespace"
	}
	text := lossTexts[l.Kind]
	return catalog.Conflict{
		Field: fmt.Sprintf(text.field, number), Kept: l.Winner.Records[0].Record, Lost: l.Loser.Records[0].Record,
		Reason: fmt.Sprintf(text.reason, number, strings.Join(names, ", "), l.Winner.Key.Host, l.Winner.Key.Namespace, where, l.Loser.Key.Host),
	}
}

// atEdge finds the owner of the host that a port of the edge leads to instead.
func (c conflicts) atEdge(s *catalog.Service, port *policy.EdgePort) []catalog.Conflict {
	alike := c.folded[foldOf(s.Key.Host)]
	if _, exposed := reach.EdgeMemberOf(port, s.ServiceDefinition); !exposed || len(alike) < 2 {
		return nil
	}
	viewers := map[string]struct{}{nobody: {}}
	for _, other := range alike {
		viewers[other.Key.Namespace] = struct{}{}
		for to := range other.ExportTo.All() {
			viewers[to] = struct{}{}
		}
	}
	l := portLosses{worst: map[lostThing]reach.Loss{}}
	for namespace := range viewers {
		v := catalog.Viewer{Namespace: namespace}
		if !c.means(v, s.ServiceDefinition) {
			continue
		}
		for _, other := range alike {
			_, exposed := reach.EdgeMemberOf(port, other.ServiceDefinition)
			if exposed && other.Key.Host != s.Key.Host && c.means(v, other.ServiceDefinition) && reach.EdgeAsks(port).Owner(namespace, other.ServiceDefinition, s.ServiceDefinition) < 0 {
				l.add(reach.Loss{Loser: s.ServiceDefinition, Winner: other.ServiceDefinition, Kind: reach.LostAtEdge, Name: s.Key.Host}, "")
			}
		}
	}
	for _, one := range l.worst {
		own := reach.EdgeAsks(port).Owner("", one.Winner, s.ServiceDefinition) > 0
		return []catalog.Conflict{conflictOf(one, port.Port(), []string{one.Name}, own)}
	}
	return nil
}

func (c conflicts) means(v catalog.Viewer, s catalog.ServiceDefinition) bool {
	is, found := c.now.Resolve(v, s.Key.Host)
	return found && is.Key == s.Key
}

// foldedHosts are the services whose hosts differ from another's in case alone.
func foldedHosts(now *catalog.Snapshot) map[string][]*catalog.Service {
	all := map[string][]*catalog.Service{}
	for s := range now.Services() {
		key := foldOf(s.Key.Host)
		all[key] = append(all[key], s)
	}
	for key, services := range all {
		if len(services) == 1 {
			delete(all, key)
		}
	}
	return all
}

// inbound finds who else says what a port of the service's workloads carries, and counts.
// One such workload is named.
func (c conflicts) inbound(s *catalog.Service, number uint32) []catalog.Conflict {
	own, _ := s.Port(number)
	if s.Resolution != model.ResolutionStatic {
		return nil
	}
	for e := range s.Endpoints(number).All() {
		ours := catalog.InboundPort{ServiceDefinition: s.ServiceDefinition, Port: own, Target: e.Port}
		other := c.decider(ours, catalog.WorkloadAddress{Network: e.Network, Address: e.Address})
		if marks[reach.InboundTraffic(other)] == marks[reach.InboundTraffic(ours)] {
			continue
		}
		return []catalog.Conflict{{
			Field: fmt.Sprintf("ports[%d].protocol", number), Kept: other.Records[0].Record, Lost: s.Records[0].Record,
			Reason: fmt.Sprintf("sidecars take port %d of the workload %s for %s, as port %d of %s says, and not for %s; give the endpoints of the two another port each, or both ports the same protocol",
				e.Port, e.Address, spoken(other.Port), other.Port.Number, other.Key.Host, spoken(own)),
		}}
	}
	return nil
}

// decider is the port that says what a port of a workload carries.
func (c conflicts) decider(ours catalog.InboundPort, at catalog.WorkloadAddress) catalog.InboundPort {
	if reach.InboundTraffic(ours) == reach.NotTCP || (node.Proxy{}).Reserved(ours.Target) {
		return ours
	}
	best, found := c.first(ours.Key.Namespace, at)[ours.Target]
	if !found || reach.DecidesInbound(ours, best) {
		return ours
	}
	return best
}

// first are the ports that say what the ports of a workload carry, by these. Those of a
// workload that many services have are kept for the next of them.
func (c conflicts) first(namespace string, at catalog.WorkloadAddress) map[uint32]catalog.InboundPort {
	key := workloadIn{namespace, at}
	if known := c.deciders[key]; known != nil {
		return known
	}
	ports, n := map[uint32]catalog.InboundPort{}, 0
	for other := range c.now.ServedAt(namespace, at) {
		n++
		if best, found := ports[other.Target]; reach.InboundTraffic(other) != reach.NotTCP && (!found || reach.DecidesInbound(other, best)) {
			ports[other.Target] = other
		}
	}
	if n > fewPorts {
		c.deciders[key] = ports
	}
	return ports
}

// workloadIn is a workload, as the services of a namespace have it.
type workloadIn struct {
	namespace string
	at        catalog.WorkloadAddress
}

// fewPorts are as many as are gone through again for each service of a workload.
const fewPorts = 64

func spoken(p model.Port) string { return cmp.Or(p.Protocol, "any protocol") }
