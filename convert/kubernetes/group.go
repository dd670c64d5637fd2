package kubernetes

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/order"
	"github.com/isthmus-mesh/isthmus/model"
)

// Group is a Service with its slices. Changes are collected until [Group.Take].
type Group struct {
	cluster Cluster
	places  Places
	index   *Index
	name    Name
	service *Service // nil while there is none
	slices  map[string]*Slice

	instances map[identity]*instance         // several may be of one pod
	claims    map[string][]*instance         // by address: the instances that claim it
	ready     int                            // instances that are ready and serve a port
	known     int                            // number of ready instances whose pods are not awaited
	records   map[string][]endpoint          // by address, as they were taken
	named     map[string]map[string]struct{} // the addresses of each host name, as they were taken
	names     map[string][]string            // the host names of each address, as they were taken
	passed    bool                           // the Service was taken as it was

	whole bool                // everything is to be made anew
	dirty map[string]struct{} // addresses with records that may differ
}

// endpoint is a record as it was taken.
type endpoint struct {
	name string
	of   string // the instance, by the key of its identity; empty for a DNS name
	host string // its own name below the Service's host; empty for most
	spec model.Endpoint
}

// NewGroup returns a group without a Service and slices. The index finds the groups of
// a pod or a node, and belongs to the same goroutine.
func NewGroup(cluster Cluster, name Name, places Places, index *Index) *Group {
	return &Group{
		cluster: cluster, places: places, name: name, index: index,
		slices: map[string]*Slice{}, instances: map[identity]*instance{}, claims: map[string][]*instance{},
		records: map[string][]endpoint{}, named: map[string]map[string]struct{}{}, names: map[string][]string{}, dirty: map[string]struct{}{},
	}
}

// SetService sets or removes the group's Service; all records are made anew.
func (g *Group) SetService(s *Service) {
	g.service, g.whole = s, true
	for _, i := range g.instances {
		g.reclaim(i)
	}
}

// SetSlice adds a slice, or a newer state of a known one.
func (g *Group) SetSlice(s *Slice) {
	old := g.slices[s.Name]
	g.slices[s.Name] = s
	g.exchange(old, s)
}

// DropSlice removes a slice. Its endpoints that are also in another slice stay.
func (g *Group) DropSlice(name string) {
	old := g.slices[name]
	delete(g.slices, name)
	g.exchange(old, nil)
}

// Name returns the name of the Service.
func (g *Group) Name() Name { return g.name }

// HasService reports whether the group has its Service.
func (g *Group) HasService() bool { return g.service != nil }

// Empty reports whether the group has neither Service nor slices.
func (g *Group) Empty() bool { return g.service == nil && len(g.slices) == 0 }

// exchange replaces a slice by another. An instance that is equal in both and in no third
// slice is not claimed again.
func (g *Group) exchange(old, now *Slice) {
	moved := map[identity]struct{}{}
	before := positions(old)
	for id, p := range positions(now) {
		i := g.instances[id]
		if i == nil {
			i = &instance{id: id}
			g.instances[id] = i
		}
		was, had := before[id]
		delete(before, id)
		i.put(old, p)
		if !had || len(i.has) > 1 || *was.endpoint() != *p.endpoint() || !slices.Equal(old.ports.list, now.ports.list) {
			moved[id] = struct{}{}
		} else if i.address != "" {
			i.main, i.ports = p, now.ports // the old slice must not stay in memory
			if len(g.claims[i.address]) > 1 {
				g.touch(i.address) // the winner may depend on which slice is newer
			}
		}
	}
	for id := range before {
		g.instances[id].drop(old)
		moved[id] = struct{}{}
	}
	g.index.enter(g, old, now)
	for id := range moved {
		g.reclaim(g.instances[id])
	}
}

// reclaim recomputes the claim of an instance.
func (g *Group) reclaim(i *instance) {
	if len(i.has) == 0 {
		delete(g.instances, i.id)
	}
	was := i.claim
	if i.claim = g.claimOf(i); i.claim == was {
		// The record may show other fields, such as conditions.
		g.touch(i.address)
		return
	}
	g.leave(i, was)
	if i.address != "" {
		g.claims[i.address] = append(g.claims[i.address], i)
	}
	g.touch(was.address)
	g.touch(i.address)
	if was.ready != i.ready || was.awaits != i.awaits {
		g.count(was, -1)
		g.count(i.claim, 1)
	}
}

func (g *Group) leave(i *instance, was claim) {
	if was.address == "" {
		return
	}
	rest := slices.DeleteFunc(g.claims[was.address], func(o *instance) bool { return o == i })
	if g.claims[was.address] = rest; len(rest) == 0 {
		delete(g.claims, was.address)
	}
}

func (g *Group) touch(address string) {
	if address != "" {
		g.dirty[address] = struct{}{}
	}
}

// count counts a claim. The first and the last ready instance decide whether ending
// instances that still serve are served. They also decide for instances with awaited pods.
func (g *Group) count(c claim, by int) {
	if !c.ready {
		return
	}
	ready, known := g.ready > 0, g.known > 0
	g.ready += by
	if !c.awaits {
		g.known += by
	}
	if ready == (g.ready > 0) && known == (g.known > 0) {
		return
	}
	for address, claims := range g.claims {
		if slices.ContainsFunc(claims, func(i *instance) bool { return i.awaits || i.health == model.Draining }) {
			g.touch(address)
		}
	}
}

// podChanged handles a change of a pod that its slices do not show, and of whether it is
// awaited.
func (g *Group) podChanged(uid string) {
	for id := (identity{uid, 0}); g.instances[id] != nil; id.rank++ {
		g.reclaim(g.instances[id])
	}
}

// nodeChanged handles a change of a node or zone that the endpoints do not show themselves.
func (g *Group) nodeChanged(concerns func(*sliceEndpoint) bool) {
	for address, claims := range g.claims {
		if slices.ContainsFunc(claims, func(i *instance) bool { return concerns(i.main.endpoint()) }) {
			g.touch(address)
		}
	}
}

// addresses yields the claimed addresses, in order.
func (g *Group) addresses() iter.Seq[string] {
	return slices.Values(slices.SortedFunc(maps.Keys(g.claims), cmp.Compare[string]))
}

// claim is the address that an instance claims, and its precedence there.
type claim struct {
	address string
	also    string // the address of the other family; empty for most
	main    position
	ports   *portList
	health  model.Health
	ready   bool // healthy, and serves a port of the Service
	awaits  bool // its pod is not known yet
}

// name returns the name of the endpoint, below its Service.
func (c *claim) name() string { return c.address + "/" + c.ports.signature }

// claimOf returns the claim of an instance by its newest states. With addresses of both
// families it is one endpoint, at the address of the Service's first family. The other
// address belongs to the endpoint if it has the same ports.
func (g *Group) claimOf(i *instance) claim {
	if g.service == nil || len(i.has) == 0 {
		return claim{}
	}
	first, ok := i.newest(g.service.IPv6)
	second, other := i.newest(!g.service.IPv6)
	if !ok {
		first, other = second, false
	}
	c := claim{address: first.endpoint().address, main: first, ports: i.portsAt(first)}
	if other && i.portsAt(second).signature == c.ports.signature {
		c.also = second.endpoint().address
	}
	c.health = first.endpoint().health(g.service)
	c.ready = c.health == model.Healthy && g.serves(c.ports)
	c.awaits = first.endpoint().pod != "" && g.places.Awaits(first.endpoint().uid)
	return c
}

// winner is an instance that is served, at its ports that no other instance takes.
type winner struct {
	*instance
	ports map[string]uint32 // by the names of the Service's ports
}

// portAt is a port of the Service at a number, which one instance of an address serves.
type portAt struct {
	name   string
	number uint32
}

// winners returns the instances that are served at an address. If several share a port, the
// first in the order of [instance.before] gets it, port by port: pods of a node that share
// one port may differ in another. Two winners never have all ports in common. Instances
// that are kept back take nothing from others.
func (g *Group) winners(address string, keptBack func(*instance) bool) (list []winner) {
	claims := slices.SortedFunc(slices.Values(g.claims[address]), (*instance).before)
	taken := map[portAt]bool{}
	for _, i := range claims {
		if keptBack(i) {
			continue
		}
		w := winner{i, map[string]uint32{}}
		for port := range g.service.Spec.Ports.All() {
			number, has := g.numberOf(i.ports, port)
			if at := (portAt{port.Name, number}); has && !taken[at] {
				w.ports[port.Name], taken[at] = number, true
			}
		}
		if len(w.ports) > 0 {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b winner) int { return cmp.Compare(a.name(), b.name()) })
	return list
}

// before orders instances of an address that share a port: a serving instance is first,
// then a living one, then the newest. With publishNotReadyAddresses all of them are
// healthy, even an ended pod with an address that another pod has by now.
func (i *instance) before(o *instance) int {
	a, b := i.main.endpoint(), o.main.endpoint()
	return cmp.Or(
		cmp.Compare(preference(i.health), preference(o.health)),
		order.TrueFirst(b.terminating, a.terminating),
		order.TrueFirst(a.serving, b.serving),
		o.main.slice.newer(i.main.slice),
		i.id.compare(o.id),
	)
}

func preference(h model.Health) int {
	switch h {
	case model.Healthy:
		return 0
	case model.Draining:
		return 1
	default:
		return 2
	}
}
