package envoy

import (
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Step returns the step of a change: the new world, the names that may differ, and the
// clients concerned. Now is the snapshot after the change; the rest is as in [NewWorld].
func Step(now *catalog.Snapshot, c catalog.Change, complete bool, root string) world.Update {
	return stepOf(policy.Istio, now, c, complete, root, nil)
}

func stepOf(s *policy.Prepared, now *catalog.Snapshot, c catalog.Change, complete bool, root string, known *definitions) world.Update {
	reviewed := Reviewed(c, root)
	if movesViews(now, c) || movesClusters(now, c) {
		reviewed = []string{"*"}
	}
	return world.Update{
		World: worldUnder(s, now, complete, root, known), Changed: append(changesOf(s, now, c), edgeHostChanges(s, known, c)...), Reviewed: reviewed, Committed: c.Committed,
	}
}

// Changes lists the resources that a change may have altered, by service. Now
// is the snapshot that the change led to: a service that comes, goes or is
// exported elsewhere hides or uncovers those of the same host in other
// namespaces, which are not part of the change.
func Changes(now *catalog.Snapshot, c catalog.Change) []world.Changed {
	return changesOf(policy.Istio, now, c)
}

func changesOf(s *policy.Prepared, now *catalog.Snapshot, c catalog.Change) []world.Changed {
	var list []world.Changed
	hosts := newStepHosts(s, now)
	for _, key := range slices.SortedFunc(maps.Keys(c.Services), catalog.ServiceKey.Compare) {
		list = appendChanges(s, list, hosts, key.Host, c.Services[key])
	}
	return appendShared(s, list, hosts, c)
}

// Reviewed lists the audience keys of clients that may have another view after a change: the
// namespaces of changed scopes, and the workloads that may serve other
// ports; "*" for all, when the scopes of the root namespace changed.
func Reviewed(c catalog.Change, root string) []string {
	workloads, many := reviewedWorkloads(c)
	if _, all := c.Scopes[root]; all || many {
		return []string{"*"}
	}
	return append(slices.Sorted(maps.Keys(c.Scopes)), workloads...)
}

func appendChanges(s *policy.Prepared, list []world.Changed, hosts *stepHosts, host string, c catalog.ServiceChange) []world.Changed {
	namespaces, seen := reach.Audience(c.Old, c.New)
	if !seen {
		return list
	}
	lost, p := losses(hosts, host, c), s.Of(host)
	all := s.Subsets(p)
	note := func(port uint32, subsets []*policy.Selector, changed ...serviceType) {
		for _, t := range changed {
			for of, name := range namesAt(s, t, host, port, subsets, p) {
				urgent := t.locates && (lost[port] || leftSubset(of, c))
				list = append(list, world.Changed{Row: t.Row, Name: name, Audience: namespaces, Urgent: urgent})
			}
		}
	}
	if c.Old != nil && c.New != nil && reach.SameOffer(c.Old, c.New) {
		noteEndpoints(s, c, p, all, note)
		return list
	}
	for _, port := range concernedPorts(hosts, host, c) {
		note(port, all, serviceTypes()...)
	}
	return list
}

// namesAt yields the names of a resource and of its subsets, with the names for gateways and the short
// names.
func namesAt(s *policy.Prepared, t serviceType, host string, port uint32, subsets []*policy.Selector, p *policy.Policy) iter.Seq2[*policy.Selector, string] {
	return func(yield func(*policy.Selector, string) bool) {
		for of, name := range t.named(host, port, subsets) {
			if !yield(of, name) {
				return
			}
		}
		if t.authority {
			for short := range names.ShortNames(host, s.Domain) {
				if !yield(nil, t.name(short, port)) {
					return
				}
			}
		}
		if t.Row == ClusterType && s.MayChoose(host) && !yield(nil, names.Subset(host, port, names.Chosen)) {
			return
		}
		if !s.Gateway || !t.subsets || !p.TLS.OfMesh() {
			return
		}
		for of, name := range entered(host, port, subsets) {
			if !yield(of, name) {
				return
			}
		}
	}
}

// noteEndpoints notes the resources that a change of only endpoints concerns: those of the
// subsets with changed endpoints, or of all subsets if the whole port is concerned.
func noteEndpoints(s *policy.Prepared, c catalog.ServiceChange, p *policy.Policy, all []*policy.Selector, note func(uint32, []*policy.Selector, ...serviceType)) {
	some := touched(all, c)
	for _, port := range c.New.Ports {
		old, now := c.Old.Endpoints(port.Number), c.New.Endpoints(port.Number)
		follows := p.TLS.FollowsAccounts() || p.TLS == nil && s.Mesh.In(c.New.Key.Namespace) != nil
		if follows && reach.OtherIdentities(c, port.Number) {
			note(port.Number, all, clustersOfServices)
		}
		if old == now {
			continue
		}
		// gRPC is given all weights of a locality in one scale, and an assignment one of several at an address.
		if old.Uneven() || now.Uneven() || reach.SharesSockets(c, port.Number) {
			some = all
		}
		switch c.New.ResolutionAt(port.Number) {
		case model.ResolutionStatic:
			if reach.AgainstGRPC(old) != reach.AgainstGRPC(now) { // it may be offered the service now, or not any more
				note(port.Number, all, assignmentsOfServices, clustersOfServices, listenersOfServices, routesOfServices)
			} else {
				note(port.Number, some, assignmentsOfServices)
			}
		case model.ResolutionDNS, model.ResolutionDNSRoundRobin:
			// The names are part of the cluster, and how many there are decides
			// whether gRPC is offered the service.
			note(port.Number, some, clustersOfServices, listenersOfServices, routesOfServices)
		default:
			// No resource is made of the endpoints.
		}
	}
}

// concernedPorts returns the ports of a host of which something may differ.
func concernedPorts(hosts *stepHosts, host string, c catalog.ServiceChange) []uint32 {
	var ports []uint32
	add := func(s *catalog.Service) {
		for _, port := range s.Ports {
			ports = append(ports, port.Number)
		}
	}
	for _, s := range []*catalog.Service{c.Old, c.New} {
		if s != nil {
			add(s)
		}
	}
	if c.Old == nil || c.New == nil || !reach.SameStanding(c.Old, c.New) {
		ports = append(ports, hosts.of(host).ports...)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// losses returns the ports that have lost an endpoint in some view
// that it had before: it was removed, or is not healthy any more. Clients
// go on sending there until they know.
func losses(hosts *stepHosts, host string, c catalog.ServiceChange) map[uint32]bool {
	lost := map[uint32]bool{}
	if c.Old != nil && c.New != nil && reach.SameStanding(c.Old, c.New) {
		for id := range c.Endpoints {
			if serves(c.Old, id) && (!serves(c.New, id) || reach.Confined(c.New) && moved(c, id)) {
				lost[id.ServicePort] = true
			}
		}
		for _, port := range c.Old.Ports {
			lost[port.Number] = lost[port.Number] || reach.Confined(c.New) && c.New.Traffic != c.Old.Traffic
		}
		return lost
	}
	// Views change over to another service of the host, or from one.
	if c.Old != nil {
		for _, port := range c.Old.Ports {
			lost[port.Number] = c.Old.Endpoints(port.Number).Counts().Healthy > 0
		}
	}
	for port, others := range hosts.of(host).healthy {
		if c.New != nil && c.New.Endpoints(port).Counts().Healthy > 0 {
			others--
		}
		lost[port] = lost[port] || others > 0
	}
	return lost
}

// serves reports whether a service has an endpoint and it is healthy.
func serves(s *catalog.Service, id catalog.EndpointID) bool {
	e, ok := s.Endpoints(id.ServicePort).Get(id)
	return ok && e.Health == model.Healthy
}

// moved reports whether an endpoint is on another node than before.
func moved(c catalog.ServiceChange, id catalog.EndpointID) bool {
	was, _ := c.Old.Endpoints(id.ServicePort).Get(id)
	is, _ := c.New.Endpoints(id.ServicePort).Get(id)
	of, _ := was.Labels.Get(lb.ClusterLabel)
	now, _ := is.Labels.Get(lb.ClusterLabel)
	return was.Node != is.Node || of != now
}

// touched are the subsets of which endpoints changed.
func touched(subsets []*policy.Selector, c catalog.ServiceChange) (some []*policy.Selector) {
	for _, s := range subsets {
		for id := range c.Endpoints {
			if holds(s, c.Old, id) || holds(s, c.New, id) {
				some = append(some, s)
				break
			}
		}
	}
	return some
}

// leftSubset reports whether an endpoint left the subset, even if it still serves others.
func leftSubset(s *policy.Selector, c catalog.ServiceChange) bool {
	if s == nil || c.Old == nil || c.New == nil {
		return false
	}
	for id := range c.Endpoints {
		if holds(s, c.Old, id) && !holds(s, c.New, id) {
			return true
		}
	}
	return false
}

// holds reports whether an endpoint of a service is part of the subset.
func holds(s *policy.Selector, of *catalog.Service, id catalog.EndpointID) bool {
	e, ok := of.Endpoints(id.ServicePort).Get(id)
	return ok && s.Selects(e.Labels)
}
