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

	instances map[identity]*instance         // several may be of one pod
	claims    map[string][]*instance         // by address: those that want to be served there
	ready     int                            // instances that are ready and serve a port
	known     int                            // those of them whose pods are not awaited
	records   map[string][]endpoint          // by address, as they were taken
	named     map[string]map[string]struct{} // the addresses of each host name, as they were taken
	names     map[string][]string            // the host names of each address, as they were taken
	passed    bool                           // the Service was taken as it was

	whole bool                // everything is to be made anew
	dirty map[string]struct{} // addresses of which the records may differ
}

// endpoint is a record as it was taken.
type endpoint struct {
	name string
	of   string // the instance, by the key of its identity; empty for a name that is resolved
	host string // its own name below that of the Service; empty for most
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
			i.main, i.ports = p, now.ports // nothing may keep the old slice in memory
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

// count counts what an instance claims. The first that is ready, and the last that was,
// decide whether those are served that end and still serve, and whether those are whose
// pods are awaited.
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

// podChanged is for what a pod says and its slices do not, and for whether it is awaited.
func (g *Group) podChanged(uid string) {
	for id := (identity{uid, 0}); g.instances[id] != nil; id.rank++ {
		g.reclaim(g.instances[id])
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
