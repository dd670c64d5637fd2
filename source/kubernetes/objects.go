package kubernetes

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// object is the kept part of an object, or its removal.
type object struct {
	convert.Name
	is any // nil if it is gone
}

// readings are Istio's objects of one kind.
type readings = mirror.Mirror[convert.Name, istio.Reading]

// objects holds the API server's objects, reduced to their relevant parts.
type objects struct {
	cluster  convert.Cluster
	excluded clusterLocal

	groups *groups
	slices map[convert.Name]convert.Name // the Service of each slice
	istio  map[string]*readings          // by resource
	places *places

	left    leftOut
	recount bool // a slice is newly left out, or no more, and no listing shows it yet
}

func newObjects(c *Config) *objects {
	all := mirror.New[convert.Name, *convert.Group]("")
	o := &objects{
		cluster: c.cluster(), excluded: c.ClusterLocal, groups: all, slices: map[convert.Name]convert.Name{},
		istio: map[string]*readings{}, places: newPlaces(all, c.Pods), left: leftOut{},
	}
	for _, k := range istioKinds {
		o.istio[k.Resource()] = mirror.New[convert.Name, istio.Reading]("")
	}
	return o
}

// placeOf returns the place of the records that are made of a kind, alone or with others.
func placeOf(resource string) string {
	switch resource {
	case nodes, pods:
		return "" // without it, a record lacks attributes only
	case endpointSlices:
		return services
	default:
		return resource
	}
}

// names yields the names of the objects of a kind.
func (m *objects) names(resource string) iter.Seq[convert.Name] {
	switch resource {
	case services:
		return m.withService()
	case endpointSlices:
		return maps.Keys(m.slices)
	case pods:
		return maps.Keys(m.places.pods)
	case nodes:
		return func(yield func(convert.Name) bool) {
			for name := range m.places.nodes {
				if !yield(convert.Name{Name: name}) {
					return
				}
			}
		}
	default:
		return m.istio[resource].Keys()
	}
}

func (m *objects) withService() iter.Seq[convert.Name] {
	return func(yield func(convert.Name) bool) {
		for name, g := range m.groups.Part("").All() {
			if g.HasService() && !yield(name) {
				return
			}
		}
	}
}

// replace enters all objects of a part. A missing object is gone.
func (m *objects) replace(p part, all []object, awaitsFrom time.Time) {
	here := make(map[convert.Name]bool, len(all))
	for _, o := range all {
		here[o.Name] = true
		m.enter(p.resource, o, awaitsFrom)
	}
	for _, name := range slices.AppendSeq(slices.Collect(m.names(p.resource)), maps.Keys(m.left[p.resource])) {
		if !here[name] && (p.namespace == "" || name.Namespace == p.namespace) {
			m.enter(p.resource, object{Name: name}, awaitsFrom)
		}
	}
}

// enter enters an object by its kind. New pods of a slice are awaited from a time on; a
// zero time awaits none.
func (m *objects) enter(resource string, o object, awaitsFrom time.Time) {
	switch resource {
	case services:
		m.enterService(o)
	case endpointSlices:
		m.enterSlice(o, awaitsFrom)
	case nodes:
		m.places.enterNode(o)
	case pods:
		m.places.enterPod(o)
	default:
		m.enterIstio(resource, o)
	}
}

func (m *objects) enterService(o object) {
	if m.excluded.has(o.Name) {
		return
	}
	if s, is := o.is.(convert.Service); is {
		m.group(o.Name).SetService(&s)
	} else if g, in := m.groups.Get(o.Name); in != nil {
		g.SetService(nil)
	}
	m.groups.Touch(o.Name)
}

// enterSlice enters a slice. A slice that has changed its Service leaves the former.
func (m *objects) enterSlice(o object, awaitsFrom time.Time) {
	s, is := o.is.(*convert.Slice)
	is = is && s.Service.Name != "" && !m.excluded.has(s.Service)
	m.recount = m.left.set(endpointSlices, o.Name, is && s.FQDN) || m.recount
	is = is && !s.FQDN
	if old, had := m.slices[o.Name]; had && (!is || old != s.Service) {
		m.group(old).DropSlice(o.Name.Name)
		m.groups.Touch(old)
		delete(m.slices, o.Name)
	}
	if is {
		if !awaitsFrom.IsZero() {
			m.places.await(s, awaitsFrom)
		}
		m.group(s.Service).SetSlice(s)
		m.slices[o.Name] = s.Service
		m.groups.Touch(s.Service)
	}
}

// group returns the group of a Service, which may not exist yet.
func (m *objects) group(name convert.Name) *convert.Group {
	g, in := m.groups.Get(name)
	if in == nil {
		g = convert.NewGroup(m.cluster, name, m.places, &m.places.index)
		m.groups.Part("").Put(name, g)
	}
	return g
}

func (m *objects) enterIstio(resource string, o object) {
	r, is := o.is.(istio.Reading)
	m.left.set(resource, o.Name, is && r.Ignored)
	if is && !r.Ignored {
		m.istio[resource].Part("").Put(o.Name, r)
	} else {
		m.istio[resource].Part("").Delete(o.Name)
	}
}

// change returns the changes of single objects since the last one.
func (m *objects) change() (change source.Change) {
	for _, name := range sorted(m.groups.Take()) {
		if g, in := m.groups.Get(name); in != nil {
			appendChange(&change, g.Take())
			m.forget(name, g)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(m.istio)) {
		c := mirror.ChangeOf(m.entries(resource, m.istio[resource].Take()))
		change.Upserts = append(change.Upserts, c.Upserts...)
		change.Deletes = append(change.Deletes, c.Deletes...)
		change.Rejected = append(change.Rejected, c.Rejected...)
	}
	return change
}

func appendChange(change *source.Change, c convert.Change) {
	change.Upserts = append(change.Upserts, c.Upserts...)
	change.Deletes = append(change.Deletes, c.Deletes...)
	change.OwnedUpserts = append(change.OwnedUpserts, c.OwnedUpserts...)
	change.OwnedDeletes = append(change.OwnedDeletes, c.OwnedDeletes...)
}

// add adds everything of a place to a listing. No change repeats it.
func (m *objects) add(listing *source.Listing, place string) {
	m.recount = false
	switch resources := m.istio[place]; {
	case resources != nil:
		resources.Take()
		for e := range m.entries(place, slices.Collect(resources.Keys())) {
			e.AddTo(listing)
		}
	case place == services:
		for _, name := range sorted(slices.Collect(m.groups.Keys())) {
			g, _ := m.groups.Get(name)
			listing.Objects = append(listing.Objects, g.Objects()...)
			m.forget(name, g)
		}
		m.groups.Take()
	}
}

// recordPlaces returns the places of all records.
func (m *objects) recordPlaces() []string {
	return append([]string{services}, slices.Sorted(maps.Keys(m.istio))...)
}

// forget drops an empty group.
func (m *objects) forget(name convert.Name, g *convert.Group) {
	if g.Empty() {
		m.groups.Part("").Forget(name)
	}
}

// entries yields the outcomes of some of Istio's objects, in order.
func (m *objects) entries(resource string, names []convert.Name) iter.Seq[mirror.Entry] {
	sorted(names)
	return func(yield func(mirror.Entry) bool) {
		for _, name := range names {
			if !yield(entryOf(resource, m.istio[resource], name)) {
				return
			}
		}
	}
}

func entryOf(resource string, all *readings, name convert.Name) mirror.Entry {
	e := mirror.Entry{
		Ref:    model.Ref{Kind: recordKind(resource), Key: model.Key{Namespace: name.Namespace, Name: name.Name}},
		Places: []string{resource},
	}
	switch r, in := all.Get(name); {
	case in == nil:
	case r.Valid():
		o := r.Listed(resource)
		e.Object = &o
	default:
		f := r.Rejection(resource, resource)
		e.Rejected = &f
	}
	return e
}

// sorted sorts names in place, and returns them.
func sorted(names []convert.Name) []convert.Name {
	slices.SortFunc(names, convert.Name.Compare)
	return names
}

// leftOut has the names of objects that are left out, by resource: EndpointSlices
// with names instead of addresses, and objects that an Isthmus wrote.
type leftOut map[string]map[convert.Name]struct{}

// set stores whether an object is left out. It reports whether that is new.
func (l leftOut) set(resource string, name convert.Name, is bool) bool {
	if _, was := l[resource][name]; was == is {
		return false
	}
	if !is {
		delete(l[resource], name)
		return true
	}
	if l[resource] == nil {
		l[resource] = map[convert.Name]struct{}{}
	}
	l[resource][name] = struct{}{}
	return true
}

// counts returns the number of left-out objects of each kind.
func (l leftOut) counts() map[string]int {
	all := map[string]int{}
	for resource, names := range l {
		if len(names) > 0 {
			all[kindOf(resource)] = len(names)
		}
	}
	return all
}
