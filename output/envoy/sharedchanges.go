package envoy

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// sharedName is a listener or route configuration that many services may share.
type sharedName struct {
	row  world.Row
	name string
}

// appendShared notes the listeners that lead to services which changed, and the routes
// to them, each once however many services it has. Common are those that any service may
// be part of.
func appendShared(s *policy.Prepared, list []world.Changed, hosts *stepHosts, c catalog.Change) []world.Changed {
	noted := audiences{}
	single, common := newSingleChanges(s, hosts, noted), sharedByAll(s)
	for key, service := range c.Services {
		single.count(key.Host, service)
	}
	for key, service := range c.Services {
		namespaces, seen := reach.Audience(service.Old, service.New)
		if !seen {
			continue
		}
		if service.Old != nil && service.New != nil && reach.SameOffer(service.Old, service.New) {
			for name := range reach.ChangedInstances(s, hosts.now, service) {
				noted.add(sharedName{ListenerType, name}, namespaces)
			}
			continue
		}
		hosts.note(noted, key.Host, service, namespaces)
		noteSecrets(s, noted, key.Host, namespaces)
		for _, name := range common {
			noted.add(name, namespaces)
		}
		single.take(key.Host, service, namespaces)
	}
	for _, number := range hosts.now.Crowded(c) {
		for key, names := range reach.CrowdedInstances(s, hosts.now, number) {
			noted.crowd(s, key.Host, number, names)
		}
	}
	single.crossed()
	single.findConflicts()
	hosts.noteAll(noted)
	for _, name := range slices.SortedFunc(maps.Keys(noted), func(a, b sharedName) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.name, b.name))
	}) {
		// A single host goes from a route configuration that stays, and does not wait for
		// that one: another host may have its domains at once.
		list = append(list, world.Changed{Row: name.row, Name: name.name, Audience: noted[name].list(), Revoked: name.row == VirtualHostType})
	}
	return list
}

// audiences are the namespaces that a name concerns. As many services may have a part in
// it as there are namespaces, each for its own.
type audiences map[sharedName]*namespaceSet

// add adds namespaces to those that a name concerns; nil stands for all.
func (a audiences) add(name sharedName, namespaces []string) {
	if a[name] == nil {
		a[name] = &namespaceSet{own: true}
	}
	a[name].add(namespaces)
}

// crowd adds the listeners at the instances of a service of a crowded port, and the cluster of these.
func (a audiences) crowd(s *policy.Prepared, host string, number uint32, listeners iter.Seq[string]) {
	for name := range listeners {
		a.add(sharedName{ListenerType, name}, nil)
	}
	if s.MayChoose(host) {
		a.add(sharedName{ClusterType, names.Subset(host, number, names.Chosen)}, nil)
	}
}

// join adds a set of them that many names have in common, and to which nothing is added any
// longer. It comes after all calls of add.
func (a audiences) join(name sharedName, set *namespaceSet) {
	was := a[name]
	switch {
	case was == nil:
		a[name] = set
		return
	case was == set:
		return
	case !was.own:
		own := &namespaceSet{own: true}
		own.join(was)
		a[name] = own
	}
	a[name].join(set)
}

// namespaceSet are namespaces, or all of them.
type namespaceSet struct {
	own   bool // of one name
	all   bool
	names map[string]struct{}
	made  []string // the list of them, once it was asked for
}

// add adds some; nil stands for all.
func (s *namespaceSet) add(namespaces []string) {
	if s.all = s.all || namespaces == nil; s.all {
		s.names = nil
		return
	}
	if s.names == nil {
		s.names = make(map[string]struct{}, len(namespaces))
	}
	for _, ns := range namespaces {
		s.names[ns] = struct{}{}
	}
}

// join adds those of another set.
func (s *namespaceSet) join(o *namespaceSet) {
	switch {
	case s.all || o.all:
		s.add(nil)
	case s.names == nil:
		s.names = maps.Clone(o.names)
	default:
		maps.Copy(s.names, o.names)
	}
}

// list lists them in order; nil for all.
func (s *namespaceSet) list() []string {
	if s.made == nil && !s.all {
		s.made = slices.AppendSeq(make([]string, 0, len(s.names)), maps.Keys(s.names))
		slices.Sort(s.made)
	}
	return s.made
}

// note notes the names that may lead to a service of the host, before a change or after
// it. Those to which its other services lead as well are left to noteAll.
func (s *stepHosts) note(noted audiences, host string, c catalog.ServiceChange, namespaces []string) {
	h := s.of(host)
	h.changed.add(namespaces)
	ports := concernedPorts(s, host, c)
	for _, port := range ports {
		if h.concerned[port] == nil {
			h.concerned[port] = &namespaceSet{}
		}
		h.concerned[port].add(namespaces)
	}
	if c.Old == nil {
		return
	}
	for name := range reach.Instances(s.settings, s.now, c.Old) {
		noted.add(sharedName{ListenerType, name}, namespaces)
	}
	for address := range s.addresses(c.Old.ServiceDefinition) {
		if _, still := h.addresses[address]; still {
			continue
		}
		for _, port := range ports {
			noted.add(sharedName{ListenerType, names.Socket(address, port)}, namespaces)
		}
	}
}

// noteAll notes the names that may lead to any service of the hosts that changed.
func (s *stepHosts) noteAll(noted audiences) {
	for host, h := range s.hosts {
		for port, namespaces := range h.concerned {
			noted.join(sharedName{RouteType, names.PortRoutes(port)}, namespaces)
			noted.join(sharedName{RouteType, names.Listener(host, port)}, namespaces)
			for _, address := range []string{names.AnyIPv4, names.AnyIPv6, names.LocalIPv4, names.LocalIPv6} {
				noted.join(sharedName{ListenerType, names.Socket(address, port)}, namespaces)
			}
			for address := range h.addresses {
				noted.join(sharedName{ListenerType, names.Socket(address, port)}, namespaces)
			}
		}
		if h.changed.all || len(h.changed.names) > 0 {
			for _, name := range h.instances {
				noted.join(sharedName{ListenerType, name}, h.changed)
			}
		}
	}
}

// stepHosts caches facts about all services of a host during a step. It looks at them once:
// many namespaces may have services of one host, and all of these may change at once.
type stepHosts struct {
	settings *policy.Prepared
	now      *catalog.Snapshot
	hosts    map[string]*stepHost
}

// stepHost sums up the services of a host, after the step.
type stepHost struct {
	services  int
	ports     []uint32 // in order
	addresses map[string]struct{}
	instances []string       // the listeners there
	healthy   map[uint32]int // by port: how many of them have a healthy endpoint there

	// concerned are those who may see a change of one of them that concerns a port, and
	// changed those who may see any.
	concerned map[uint32]*namespaceSet
	changed   *namespaceSet
}

func newStepHosts(s *policy.Prepared, now *catalog.Snapshot) *stepHosts {
	return &stepHosts{s, now, map[string]*stepHost{}}
}

// addresses yields the addresses at which there may be a listener for a service.
func (s *stepHosts) addresses(of catalog.ServiceDefinition) iter.Seq[string] {
	return func(yield func(string) bool) {
		for address := range of.EveryAddress() {
			if !yield(address) {
				return
			}
		}
		if s.settings.DNS == nil || !s.settings.DNS.Allot.On() || of.Base.Addresses.Len() > 0 {
			return
		}
		if a := names.AllotmentOf(of.Key.Host); yield(a.IPv4()) {
			yield(a.IPv6())
		}
	}
}

func (s *stepHosts) of(host string) *stepHost {
	if known := s.hosts[host]; known != nil {
		return known
	}
	h := &stepHost{addresses: map[string]struct{}{}, healthy: map[uint32]int{}, concerned: map[uint32]*namespaceSet{}, changed: &namespaceSet{}}
	for service := range s.now.ByHost(host) {
		h.services++
		for _, port := range service.Ports {
			h.ports = append(h.ports, port.Number)
			if service.Endpoints(port.Number).Counts().Healthy > 0 {
				h.healthy[port.Number]++
			}
		}
		for address := range s.addresses(service.ServiceDefinition) {
			h.addresses[address] = struct{}{}
		}
		h.instances = slices.AppendSeq(h.instances, reach.Instances(s.settings, s.now, service))
	}
	slices.Sort(h.ports)
	h.ports = slices.Compact(h.ports)
	s.hosts[host] = h
	return h
}
