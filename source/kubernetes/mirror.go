package kubernetes

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

// mirror holds the API server's objects, reduced to their relevant parts. Feeds enter
// objects in the order of arrival, and the run takes the steps to pass on.
type mirror struct {
	mu        sync.Mutex
	cluster   convert.Cluster
	readsPods bool
	ignored   func(service convert.Name) bool

	groups map[convert.Name]*convert.Group
	index  convert.Index
	slices map[convert.Name]convert.Name // the Service of each slice
	nodes  map[string]convert.Node
	zones  map[string]map[string]int // by zone, the number of nodes for each region
	pods   map[convert.Name]convert.Pod
	istio  map[string]map[convert.Name]istio.Reading // by resource

	unlisted parts // parts that a listing lacks yet
	primed   bool
	awaited  awaited                              // pods
	dirty    map[convert.Name]struct{}            // groups that may have changed
	touched  map[string]map[convert.Name]struct{} // objects of Istio that have changed, by resource
	left     leftOut
	recount  bool // a slice is newly left out, or no more, and no listing shows it yet
	pending  []step
	since    time.Time // arrival of the first pending change
}

// object is the kept part of an object, or its removal.
type object struct {
	convert.Name
	is any // nil if it is gone
}

func newMirror(c *Config, kinds []kind) *mirror {
	return &mirror{
		cluster: c.cluster(), readsPods: c.Pods, ignored: c.isClusterLocal, unlisted: partsOf(kinds),
		groups: map[convert.Name]*convert.Group{}, slices: map[convert.Name]convert.Name{},
		left: leftOut{}, awaited: awaited{until: map[string]time.Time{}}, nodes: map[string]convert.Node{}, zones: map[string]map[string]int{}, pods: map[convert.Name]convert.Pod{},
		istio: map[string]map[convert.Name]istio.Reading{},
		dirty: map[convert.Name]struct{}{}, touched: map[string]map[convert.Name]struct{}{},
	}
}

// change enters one object.
func (m *mirror) change(resource string, o object, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began(at)
	m.enter(resource, o, at)
}

// replace enters all objects of a kind, or of a kind in a namespace. A missing object
// is not passed on as deleted: a listing lacks it.
func (m *mirror) replace(resource, namespace string, objects []object, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began(at)
	m.flush()
	here := make(map[convert.Name]bool, len(objects))
	for _, o := range objects {
		here[o.Name] = true
		m.enter(resource, o, at)
	}
	for _, name := range slices.AppendSeq(slices.Collect(m.names(resource)), maps.Keys(m.left[resource])) {
		if !here[name] && (namespace == "" || name.Namespace == namespace) {
			m.enter(resource, object{Name: name}, at)
		}
	}
	first := m.unlisted[part{resource, namespace}]
	delete(m.unlisted, part{resource, namespace})
	switch place := placeOf(resource); {
	case !m.primed:
	case place != "":
		m.append(place)
	case first: // no record has this place, but the status reports it as lacking
		m.append(resource)
	}
}

// isListed reports whether a part has been listed.
func (m *mirror) isListed(p part) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.unlisted[p]
}

func (m *mirror) began(at time.Time) {
	if m.since.IsZero() {
		m.since = at
	}
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
func (m *mirror) names(resource string) iter.Seq[convert.Name] {
	switch resource {
	case services:
		return m.withService()
	case endpointSlices:
		return maps.Keys(m.slices)
	case pods:
		return maps.Keys(m.pods)
	case nodes:
		return func(yield func(convert.Name) bool) {
			for name := range m.nodes {
				if !yield(convert.Name{Name: name}) {
					return
				}
			}
		}
	default:
		return maps.Keys(m.istio[resource])
	}
}

func (m *mirror) withService() iter.Seq[convert.Name] {
	return func(yield func(convert.Name) bool) {
		for name, g := range m.groups {
			if g.HasService() && !yield(name) {
				return
			}
		}
	}
}

// enter enters an object by its kind.
func (m *mirror) enter(resource string, o object, at time.Time) {
	switch resource {
	case services:
		m.enterService(o)
	case endpointSlices:
		m.enterSlice(o, at)
	case nodes:
		m.enterNode(o)
	case pods:
		m.enterPod(o)
	default:
		m.enterIstio(resource, o)
	}
}

func (m *mirror) enterService(o object) {
	if m.ignored(o.Name) {
		return
	}
	if s, is := o.is.(convert.Service); is {
		m.group(o.Name).SetService(&s)
	} else if g := m.groups[o.Name]; g != nil {
		g.SetService(nil)
	}
	m.dirty[o.Name] = struct{}{}
}

// enterSlice enters a slice. A slice that has changed its Service leaves the former.
func (m *mirror) enterSlice(o object, at time.Time) {
	s, is := o.is.(*convert.Slice)
	is = is && s.Service.Name != "" && !m.ignored(s.Service)
	m.recount = m.left.set(endpointSlices, o.Name, is && s.FQDN) || m.recount
	is = is && !s.FQDN
	if old, had := m.slices[o.Name]; had && (!is || old != s.Service) {
		m.groups[old].DropSlice(o.Name.Name)
		m.dirty[old] = struct{}{}
		delete(m.slices, o.Name)
	}
	if is {
		m.await(s, at)
		m.group(s.Service).SetSlice(s)
		m.slices[o.Name] = s.Service
		m.dirty[s.Service] = struct{}{}
	}
}

// group returns the group of a Service, which may not exist yet.
func (m *mirror) group(name convert.Name) *convert.Group {
	g := m.groups[name]
	if g == nil {
		g = convert.NewGroup(m.cluster, name, m, &m.index)
		m.groups[name] = g
	}
	return g
}

func (m *mirror) enterPod(o object) {
	old, had := m.pods[o.Name]
	p, is := o.is.(convert.Pod)
	if had == is && old.Same(p) {
		return
	}
	delete(m.pods, o.Name)
	if is {
		m.pods[o.Name] = p
		m.awaited.end(p.UID)
		m.mark(m.index.PodChanged(p.UID))
	}
	if had && old.UID != p.UID {
		m.mark(m.index.PodChanged(old.UID))
	}
}

func (m *mirror) enterNode(o object) {
	name := o.Name.Name
	old, had := m.nodes[name]
	n, is := o.is.(convert.Node)
	if had == is && old == n {
		return
	}
	m.region(old, had, -1)
	delete(m.nodes, name)
	if is {
		m.nodes[name] = n
		m.region(n, true, 1)
	}
	m.mark(m.index.NodeChanged(name))
}

// region counts the region that a node reports for its zone.
func (m *mirror) region(n convert.Node, counts bool, by int) {
	zone, region := n.Locality.Zone, n.Locality.Region
	if !counts || zone == "" || region == "" {
		return
	}
	before := m.Region(zone)
	if m.zones[zone] == nil {
		m.zones[zone] = map[string]int{}
	}
	if m.zones[zone][region] += by; m.zones[zone][region] == 0 {
		delete(m.zones[zone], region)
	}
	if m.Region(zone) != before {
		m.mark(m.index.ZoneChanged(zone))
	}
}

func (m *mirror) mark(groups iter.Seq[*convert.Group]) {
	for g := range groups {
		m.dirty[g.Name()] = struct{}{}
	}
}

// Node implements [convert.Places].
func (m *mirror) Node(name string) (model.Locality, bool) {
	n, known := m.nodes[name]
	return n.Locality, known
}

// Region implements [convert.Places].
func (m *mirror) Region(zone string) string {
	regions := slices.Sorted(maps.Keys(m.zones[zone]))
	if len(regions) == 0 {
		return ""
	}
	return regions[0]
}

// Pod implements [convert.Places].
func (m *mirror) Pod(name convert.Name) (convert.Pod, bool) {
	p, known := m.pods[name]
	return p, known
}

func (m *mirror) enterIstio(resource string, o object) {
	if m.istio[resource] == nil {
		m.istio[resource], m.touched[resource] = map[convert.Name]istio.Reading{}, map[convert.Name]struct{}{}
	}
	r, is := o.is.(istio.Reading)
	m.left.set(resource, o.Name, is && r.Ignored)
	if is && !r.Ignored {
		m.istio[resource][o.Name] = r
	} else {
		delete(m.istio[resource], o.Name)
	}
	m.touched[resource][o.Name] = struct{}{}
}
