package kubernetes

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Group is a Service with its slices. What changes is gathered until [Group.Take].
type Group struct {
	cluster Cluster
	places  Places
	index   *Index
	name    Name
	service *Service // nil while there is none
	slices  map[string]*Slice

	instances map[string]*instance           // by identity
	claims    map[string][]*instance         // by address: those that want to be served there
	ready     int                            // instances that are ready
	records   map[string][]endpoint          // by address, as they were taken
	named     map[string]map[string]struct{} // the addresses of each host name, as they were taken
	names     map[string][]string            // the host names of each address, as they were taken
	passed    bool                           // the Service was taken as it was

	whole bool                // everything is to be made anew
	dirty map[string]struct{} // addresses of which the records may differ
}

// instance is one thing that serves: a pod, or an address of which no more is known.
// While it moves from one slice to another, both may have it, or none.
type instance struct {
	id    string
	has   []position
	claim // by the newest of them; its address is empty if nothing is served
}

// position is where in which slice an instance stands.
type position struct {
	slice *Slice
	at    int
}

func (p position) endpoint() *sliceEndpoint { return &p.slice.endpoints[p.at] }

// endpoint is a record as it was taken.
type endpoint struct {
	name string
	host string // its own name below that of the Service; empty for most
	spec model.Endpoint
}

// NewGroup returns a group without a Service and slices. The index finds the groups of
// a pod or a node, and belongs to the same goroutine.
func NewGroup(cluster Cluster, name Name, places Places, index *Index) *Group {
	return &Group{
		cluster: cluster, places: places, name: name, index: index,
		slices: map[string]*Slice{}, instances: map[string]*instance{}, claims: map[string][]*instance{},
		records: map[string][]endpoint{}, named: map[string]map[string]struct{}{}, names: map[string][]string{}, dirty: map[string]struct{}{},
	}
}

// SetService gives the group its Service, or takes it away; everything of it is made anew.
func (g *Group) SetService(s *Service) {
	g.service, g.whole = s, true
	for _, i := range g.instances {
		g.reclaim(i)
	}
}

// SetSlice adds a slice, or a newer state of one.
func (g *Group) SetSlice(s *Slice) {
	old := g.slices[s.Name]
	g.slices[s.Name] = s
	g.exchange(old, s)
}

// DropSlice removes a slice. What another slice has of its endpoints stays.
func (g *Group) DropSlice(name string) {
	old := g.slices[name]
	delete(g.slices, name)
	g.exchange(old, nil)
}

// Name is that of the Service.
func (g *Group) Name() Name { return g.name }

// HasService reports whether there is one.
func (g *Group) HasService() bool { return g.service != nil }

// Empty reports whether there is nothing left.
func (g *Group) Empty() bool { return g.service == nil && len(g.slices) == 0 }

// exchange replaces a slice by another. An instance that stands in both, says the same
// and stands in no third is not looked at again.
func (g *Group) exchange(old, now *Slice) {
	moved := map[string]struct{}{}
	before := g.positions(old)
	for id, p := range g.positions(now) {
		i := g.instances[id]
		if i == nil {
			i = &instance{id: id}
			g.instances[id] = i
		}
		was, had := before[id]
		delete(before, id)
		i.put(old, p)
		if !had || len(i.has) > 1 || *was.endpoint() != *p.endpoint() || !slices.Equal(old.ports, now.ports) {
			moved[id] = struct{}{}
		} else if i.address != "" {
			i.main = p // nothing may keep the old slice in memory
			if len(g.claims[i.address]) > 1 {
				g.touch(i.address) // who has it may hang on which slice is newer
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

// positions are the instances of a slice. Where one stands twice, the last counts.
func (g *Group) positions(s *Slice) map[string]position {
	if s == nil {
		return nil
	}
	all := make(map[string]position, len(s.endpoints))
	for at := range s.endpoints {
		all[identity(s, &s.endpoints[at])] = position{s, at}
	}
	return all
}

// identity is the same wherever an instance stands. Without one of its own it is its
// address and ports: several may share an address, such as that of their node.
func identity(s *Slice, e *sliceEndpoint) string {
	if e.uid != "" {
		return e.uid
	}
	return e.address + "/" + signature(s.ports)
}

func (i *instance) put(old *Slice, p position) {
	at := slices.IndexFunc(i.has, func(o position) bool { return o.slice == old && old != nil })
	if at >= 0 {
		i.has[at] = p
		return
	}
	i.has = append(i.has, p)
}

func (i *instance) drop(s *Slice) {
	i.has = slices.DeleteFunc(i.has, func(p position) bool { return p.slice == s })
}

// newest is the position of a family that counts; ok is false if there is none.
func (i *instance) newest(ipv6 bool) (best position, ok bool) {
	for _, p := range i.has {
		if p.slice.IPv6 == ipv6 && (!ok || p.slice.newer(best.slice) > 0) {
			best, ok = p, true
		}
	}
	return best, ok
}

// reclaim finds out again where an instance wants to be served.
func (g *Group) reclaim(i *instance) {
	if len(i.has) == 0 {
		delete(g.instances, i.id)
	}
	was := i.claim
	if i.claim = g.claimOf(i); i.claim == was {
		// Of what does not show here, such as its conditions, the record may tell.
		g.touch(i.address)
		return
	}
	g.leave(i, was)
	if i.address != "" {
		g.claims[i.address] = append(g.claims[i.address], i)
	}
	g.touch(was.address)
	g.touch(i.address)
	g.count(was.ready, i.ready)
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

// count notes whether an instance is ready. The first that is, and the last that was,
// decide whether those are served that end and still serve.
func (g *Group) count(was, is bool) {
	before := g.ready
	if was {
		g.ready--
	}
	if is {
		g.ready++
	}
	if (before == 0) == (g.ready == 0) {
		return
	}
	for address, claims := range g.claims {
		if slices.ContainsFunc(claims, func(i *instance) bool { return i.health == model.Draining }) {
			g.touch(address)
		}
	}
}

// podChanged is for what a pod says and its slices do not.
func (g *Group) podChanged(uid string) {
	if i := g.instances[uid]; i != nil {
		g.touch(i.address)
	}
}

// nodeChanged is for what the endpoints on a node, or in a zone, do not say themselves.
func (g *Group) nodeChanged(concerns func(*sliceEndpoint) bool) {
	for address, claims := range g.claims {
		if slices.ContainsFunc(claims, func(i *instance) bool { return concerns(i.main.endpoint()) }) {
			g.touch(address)
		}
	}
}

// addresses yields those that are claimed, in order.
func (g *Group) addresses() iter.Seq[string] {
	return slices.Values(slices.SortedFunc(maps.Keys(g.claims), cmp.Compare[string]))
}
