package conflict

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/order"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
)

// noNamespace stands for every namespace without services and without exports to it.
const noNamespace = "\x00"

// portLosses collects the losses of the services of a port.
type portLosses struct {
	ctx   context.Context
	index *catalog.PortServices
	proxy node.Proxy
	under *policy.Prepared
	first map[lostThing]reach.Loss // the loss to the first owner in the order of ownership
}

// lostThing is an address, a host or a protocol that a service asks for.
type lostThing struct {
	loser catalog.ServiceKey
	kind  reach.LossKind
	name  string
}

// add enters a loss at the listener of an address. An empty address stands for the shared
// listener.
func (l portLosses) add(loss reach.Loss, address string) {
	switch {
	case loss.Name != "":
	case address != "":
		loss.Name = address
	case l.proxy.Mode == node.None:
		loss.Name = "loopback with INTERCEPTION_MODE NONE"
	case loss.Kind == reach.LostConnections, loss.Kind == reach.TakesAll:
		loss.Name = "addresses that no service has"
	default:
		loss.Name = "addresses without a listener of their own"
	}
	asked := loss.Asked(l.proxy.Cluster)
	if loss.Contested() && loss.Loser.Key != loss.Winner.Key && l.alike(loss.Loser, loss.Winner) {
		return // an object never conflicts with itself
	}
	thing := lostThing{loss.Loser.Key, loss.Kind, loss.Name}
	if was, known := l.first[thing]; !known || asked.Owner("", loss.Winner, was.Winner) < 0 {
		l.first[thing] = loss
	}
}

// alike reports whether two services are hosts of the same objects, and connections to both have the
// same endpoints. A DNS name may stand in for endpoints, and differs with the host.
func (l portLosses) alike(a, b catalog.ServiceDefinition) bool {
	if r := a.ResolutionAt(l.index.Number); r != model.ResolutionStatic && r != model.ResolutionNone {
		return false
	}
	return slices.EqualFunc(a.Records, b.Records, func(x, y catalog.Contributor) bool { return x.Record == y.Record })
}

// client returns a client of a namespace.
func (l portLosses) client(namespace string) reach.Client {
	return reach.Client{Viewer: catalog.Viewer{Namespace: namespace}, Proxy: l.proxy, Settings: l.under}
}

// namespaces lists the namespaces that may see some services differently: noNamespace, the
// namespaces of the services, and the namespaces of their exports.
func (l portLosses) namespaces(services []catalog.ServiceDefinition) []string {
	distinct := map[string]struct{}{}
	for _, s := range services {
		for alike := range l.index.OfHost(s.Key.Host) {
			distinct[alike.Key.Namespace] = struct{}{}
			for to := range alike.ExportTo.All() {
				if to != "*" && to != "~" && to != "." {
					distinct[to] = struct{}{}
				}
			}
		}
	}
	return append([]string{noNamespace}, slices.Sorted(maps.Keys(distinct))...)
}

// atListeners lays out every listener of several services, once for each namespace.
func (l portLosses) atListeners() {
	shared, chosen, byAddress := []catalog.ServiceDefinition{}, []catalog.ServiceDefinition{}, map[string][]catalog.ServiceDefinition{}
	for s := range l.index.All() {
		port, ok := s.Port(l.index.Number)
		if !ok || reach.TrafficOf(port) == reach.NotTCP || !reach.HasCluster(s, l.index.Number) {
			continue
		}
		c := l.client(noNamespace)
		switch {
		case reach.Unlistened(c, s, port):
			l.add(reach.Loss{Loser: s, Winner: s, Kind: reach.LostAddressed, Name: "its endpoints"}, "")
		case reach.NeedsAddress(port) && reach.IsChosen(c, s, port) && !reach.ListensAtChosen(c, s, port):
			chosen = append(chosen, s)
		}
		if reach.SharesListener(c, s, l.index) {
			shared = append(shared, s)
		}
		if l.proxy.Mode != node.None && !reach.Follows(l.proxy, s.Definition, port) && !s.ForeignIn(l.proxy.Cluster) {
			for address := range s.OwnAddressesIn(l.proxy.Cluster) {
				byAddress[address] = append(byAddress[address], s)
			}
			for address := range reach.Allotted(l.client(noNamespace), s) {
				byAddress[address] = append(byAddress[address], s)
			}
		}
	}
	for address, services := range byAddress {
		if len(services) < 2 {
			continue
		}
		l.forEachNamespace(services, func(v reach.Client) {
			for _, loss := range reach.CallableAt(v, l.index, address).Losses(v) {
				l.add(loss, address)
			}
		})
	}
	// The order for noNamespace is nearly the order for each namespace.
	shared = slices.SortedFunc(slices.Values(l.mayConflict(shared)), func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner("", a, b) })
	everywhere := make([]bool, len(shared))
	for i, s := range shared {
		everywhere[i] = l.isSeenEverywhere(s)
	}
	var lost []reach.Loss
	seen := make([]catalog.ServiceDefinition, 0, len(shared))
	concerned := shared
	if len(shared) > 0 {
		concerned = slices.Concat(shared, chosen)
	}
	l.forEachNamespace(concerned, func(v reach.Client) {
		lost, seen = lost[:0], seen[:0]
		for i, s := range shared {
			if everywhere[i] || l.index.Means(v.Viewer, s) {
				seen = append(seen, s)
			}
		}
		layout := reach.Arrange(v, seen, l.index.Number, true, &lost)
		if rest, taken := layout.Rest(); taken {
			for _, s := range chosen {
				if l.index.Means(v.Viewer, s) {
					lost = append(lost, reach.Loss{Loser: s, Winner: rest, Kind: reach.LostConnections, Name: "its instances"})
				}
			}
		}
		for _, loss := range lost {
			// A service of another cluster has no right to an address in this one.
			if loss.Kind != reach.LostConnections || !loss.Loser.ForeignIn(l.proxy.Cluster) {
				l.add(loss, "")
			}
		}
	})
}

// atInstances finds the services of a crowded port that have no listeners at their instances, since
// others come first.
func (l portLosses) atInstances() {
	c := l.client(noNamespace)
	var first, none []catalog.ServiceDefinition
	for s := range l.index.Visible(c.Viewer) {
		port, _ := s.Port(l.index.Number)
		share, crowded := l.index.Asked(s.Key)
		switch {
		case !crowded:
			return
		case share == 0 || !reach.ListensAtChosen(c, s, port):
		case reach.IsAdmitted(c, l.index, s.Key):
			first = append(first, s)
		default:
			none = append(none, s)
		}
	}
	for _, s := range none {
		winner := s // which is too large
		if len(first) > 0 {
			winner = slices.MinFunc(first, func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner("", a, b) })
		}
		l.add(reach.Loss{Loser: s, Winner: winner, Kind: reach.LostInstances, Name: "an address"}, "")
	}
}

// isSeenEverywhere reports whether a host resolves to a service in every view.
func (l portLosses) isSeenEverywhere(s catalog.ServiceDefinition) bool {
	for alike := range l.index.OfHost(s.Key.Host) {
		if alike.Key != s.Key {
			return false
		}
	}
	return s.ExportTo.Len() == 0 || slices.Contains(s.ExportTo.Slice(), "*")
}

// forEachNamespace calls a function for each namespace that may see some services differently.
func (l portLosses) forEachNamespace(services []catalog.ServiceDefinition, look func(reach.Client)) {
	if len(services) == 0 {
		return
	}
	for _, namespace := range l.namespaces(services) {
		if l.ctx.Err() != nil {
			return
		}
		look(l.client(namespace))
	}
}

// mayConflict returns the services of a listener that may lose something there, and the
// possible owners. Nearly all services are left out, since Envoy routes their requests, or
// handshakes name them. A server that speaks first may conflict with all.
func (l portLosses) mayConflict(shared []catalog.ServiceDefinition) []catalog.ServiceDefinition {
	hosts, blocks := map[string]struct{}{}, 0
	for _, s := range shared {
		port, _ := s.Port(l.index.Number)
		if reach.ServerFirst(port) {
			return shared
		}
		if names.IsSNI(s.Key.Host) && reach.TrafficOf(port) == reach.TLS {
			hosts[s.Key.Host] = struct{}{}
		}
		for range s.BlocksIn(l.proxy.Cluster) {
			blocks++
		}
	}
	return slices.DeleteFunc(shared, func(s catalog.ServiceDefinition) bool {
		port, _ := s.Port(l.index.Number)
		kind := reach.TrafficOf(port)
		return kind == reach.HTTP || kind == reach.TLS && blocks*len(hosts) <= reach.MostInBlocks
	})
}

// domains finds the domains that services lose to others. In a route configuration the first
// visible service with a domain owns it.
func (l portLosses) domains() {
	all, several := map[string][]vhost.Candidate{}, map[string]struct{}{}
	in := vhost.Key{Domain: l.proxy.Domain, Cluster: l.proxy.Cluster}
	for s := range l.index.All() {
		port, ok := s.Port(l.index.Number)
		if kind := reach.TrafficOf(port); !ok || !reach.HasCluster(s, l.index.Number) || kind != reach.HTTP && kind != reach.Detected {
			continue
		}
		h := vhost.NewHost(s, l.index.Number, in)
		for _, domain := range h.DomainsFor(h.Home() != "") {
			c := h.CandidateFor(domain)
			if list := all[c.Domain]; len(list) > 0 && list[0].By.Key.Host != s.Key.Host {
				several[c.Domain] = struct{}{}
			}
			all[c.Domain] = append(all[c.Domain], c)
		}
	}
	for domain := range several {
		l.domain(all[domain])
	}
}

// domain finds the services that lose a domain.
func (l portLosses) domain(domains []vhost.Candidate) {
	services := make([]catalog.ServiceDefinition, len(domains))
	for i, c := range domains {
		services[i] = c.By
	}
	l.forEachNamespace(services, func(v reach.Client) {
		var owner *vhost.Candidate
		seen := func(yield func(*vhost.Candidate) bool) {
			for i := range domains {
				c := &domains[i]
				if (!c.Own || c.Home == v.Namespace) && l.index.Means(v.Viewer, c.By) && !yield(c) {
					return
				}
			}
		}
		for c := range seen {
			if owner == nil || cmp.Or(order.TrueFirst(owner.Foreign, c.Foreign), c.Asks().Owner(v.Namespace, c.By, owner.By)) < 0 {
				owner = c
			}
		}
		for c := range seen {
			if c.By.Key != owner.By.Key && !c.Foreign {
				l.add(reach.Loss{Loser: c.By, Winner: owner.By, Kind: reach.LostRequests, Name: c.Domain}, "")
			}
		}
	})
}
