package kubernetes

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// object is an object of the API server, reduced to its relevant part.
type object struct {
	convert.Name
	content any // a convert.Service, *convert.Slice, convert.Pod, convert.Node or istio.Reading; nil if deleted
}

// readings are the objects of one kind of Istio or SMI.
type readings struct {
	*mirror.Mirror[convert.Name, istio.Reading]
	of istio.Definition
}

// objects holds the API server's objects, reduced to their relevant parts.
type objects struct {
	cluster  convert.Cluster
	excluded clusterLocal

	groups *groups
	slices map[convert.Name]convert.Name // from EndpointSlice to Service
	istio  map[string]readings           // and SMI, by resource
	places *places

	leftOut        leftOut
	leftOutChanged bool // since the last listing, by an EndpointSlice
}

func newObjects(c *Config) *objects {
	all := mirror.New[convert.Name, *convert.Group]("")
	o := &objects{
		cluster: c.cluster(), excluded: c.ClusterLocal, groups: all, slices: map[convert.Name]convert.Name{},
		istio: map[string]readings{}, places: newPlaces(all, c.Pods), leftOut: leftOut{},
	}
	for _, of := range c.definitions() {
		o.istio[of.Resource()] = readings{mirror.New[convert.Name, istio.Reading](""), of}
	}
	return o
}

// placeOf returns the place, within a listing, of the records made from a resource. It is empty
// for nodes and pods: they only add attributes to the records of Services.
func placeOf(resource string) string {
	switch resource {
	case nodes, pods:
		return ""
	case endpointSlices:
		return services
	default:
		return resource
	}
}

// names yields the names of the stored objects of a resource.
func (m *objects) names(resource string) iter.Seq[convert.Name] {
	switch resource {
	case services:
		return m.serviceNames()
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

// serviceNames yields the Services that exist. Groups may have only slices.
func (m *objects) serviceNames() iter.Seq[convert.Name] {
	return func(yield func(convert.Name) bool) {
		for name, g := range m.groups.Part("").All() {
			if g.HasService() && !yield(name) {
				return
			}
		}
	}
}

// replace replaces the objects of a part by a complete list.
func (m *objects) replace(p part, all []object, awaitsFrom time.Time) {
	listed := make(map[convert.Name]bool, len(all))
	for _, o := range all {
		listed[o.Name] = true
		m.enter(p.resource, o, awaitsFrom)
	}
	for _, name := range slices.AppendSeq(slices.Collect(m.names(p.resource)), maps.Keys(m.leftOut[p.resource])) {
		if !listed[name] && (p.namespace == "" || name.Namespace == p.namespace) {
			m.enter(p.resource, object{Name: name}, awaitsFrom)
		}
	}
}

// enter stores an object, or removes it if it has no content. The pods of a new slice are
// awaited from awaitsFrom on; the zero time awaits none.
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
	if s, ok := o.content.(convert.Service); ok {
		m.group(o.Name).SetService(&s)
	} else if g, found := m.groups.Get(o.Name); found != nil {
		g.SetService(nil)
	}
	m.groups.Touch(o.Name)
}

// enterSlice stores a slice with its Service, and removes it from a former Service. Slices
// without a Service are ignored, and slices of DNS names (FQDN) are left out.
func (m *objects) enterSlice(o object, awaitsFrom time.Time) {
	s, ok := o.content.(*convert.Slice)
	relevant := ok && s.Service.Name != "" && !m.excluded.has(s.Service)
	m.leftOutChanged = m.leftOut.set(endpointSlices, o.Name, relevant && s.FQDN) || m.leftOutChanged
	usable := relevant && !s.FQDN
	if old, had := m.slices[o.Name]; had && (!usable || old != s.Service) {
		m.group(old).DropSlice(o.Name.Name)
		m.groups.Touch(old)
		delete(m.slices, o.Name)
	}
	if !usable {
		return
	}
	if !awaitsFrom.IsZero() {
		m.places.await(s, awaitsFrom)
	}
	m.group(s.Service).SetSlice(s)
	m.slices[o.Name] = s.Service
	m.groups.Touch(s.Service)
}

// group returns the group of a Service, and creates it if necessary. The Service itself may
// not exist yet.
func (m *objects) group(name convert.Name) *convert.Group {
	g, found := m.groups.Get(name)
	if found == nil {
		g = convert.NewGroup(m.cluster, name, m.places, &m.places.index)
		m.groups.Part("").Put(name, g)
	}
	return g
}

// enterIstio stores an object of Istio or SMI. Objects written by an Isthmus are left out.
func (m *objects) enterIstio(resource string, o object) {
	r, ok := o.content.(istio.Reading)
	m.leftOut.set(resource, o.Name, ok && r.Ignored)
	if ok && !r.Ignored {
		m.istio[resource].Part("").Put(o.Name, r)
	} else {
		m.istio[resource].Part("").Delete(o.Name)
	}
}

// change returns the changes of records since the last call of change or add.
func (m *objects) change() (change model.Change) {
	for _, name := range sorted(m.groups.Take()) {
		if g, found := m.groups.Get(name); found != nil {
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

func appendChange(change *model.Change, c convert.Change) {
	change.Upserts = append(change.Upserts, c.Upserts...)
	change.Deletes = append(change.Deletes, c.Deletes...)
	change.OwnedUpserts = append(change.OwnedUpserts, c.OwnedUpserts...)
	change.OwnedDeletes = append(change.OwnedDeletes, c.OwnedDeletes...)
}

// add adds the records of a place to a listing. The next change does not contain them again.
func (m *objects) add(listing *model.Listing, place string) {
	m.leftOutChanged = false
	switch resources, is := m.istio[place]; {
	case is:
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

// forget removes a group that is empty.
func (m *objects) forget(name convert.Name, g *convert.Group) {
	if g.Empty() {
		m.groups.Part("").Forget(name)
	}
}

// entries yields the records or rejections of named Istio objects, sorted by name. It sorts
// names in place.
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

func entryOf(resource string, all readings, name convert.Name) mirror.Entry {
	e := mirror.Entry{
		Ref:    model.Ref{Kind: all.of.RecordKind(), Key: model.Key{Namespace: name.Namespace, Name: name.Name}},
		Places: []string{resource},
	}
	r, found := all.Get(name)
	if found == nil { // deleted
		return e
	}
	if r.Valid() {
		o := r.Listed(resource)
		e.Object = &o
	}
	if len(r.Faults()) > 0 {
		rejection := r.Rejection(resource, resource)
		e.Rejected = &rejection
	}
	return e
}

// sorted sorts names in place and returns them.
func sorted(names []convert.Name) []convert.Name {
	slices.SortFunc(names, convert.Name.Compare)
	return names
}

// leftOut contains the names of left-out objects, by resource: EndpointSlices of DNS names, and
// objects written by an Isthmus.
type leftOut map[string]map[convert.Name]struct{}

// set stores whether an object is left out, and reports whether that changed.
func (l leftOut) set(resource string, name convert.Name, out bool) bool {
	if _, was := l[resource][name]; was == out {
		return false
	}
	if !out {
		delete(l[resource], name)
		return true
	}
	if l[resource] == nil {
		l[resource] = map[convert.Name]struct{}{}
	}
	l[resource][name] = struct{}{}
	return true
}

// ignored returns the number of left-out objects by kind, such as EndpointSlice.
func (m *objects) ignored() map[string]int {
	all := map[string]int{}
	for resource, names := range m.leftOut {
		if len(names) > 0 {
			all[cmp.Or(m.istio[resource].of.Name, "EndpointSlice")] = len(names)
		}
	}
	return all
}
