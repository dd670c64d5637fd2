package kubernetes

import (
	"iter"
	"maps"
	"slices"
	"time"

	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// groups are Services with their slices, by the name of the Service.
type groups = mirror.Mirror[convert.Name, *convert.Group]

// places holds the nodes and pods of a cluster, and the pods that are awaited.
type places struct {
	groups    *groups // touched by a change
	index     convert.Index
	nodes     map[string]convert.Node
	zones     map[string]map[string]int // by zone, the number of nodes for each region
	pods      map[convert.Name]convert.Pod
	readsPods bool
	awaited   awaited
}

var _ convert.Places = (*places)(nil)

func newPlaces(of *groups, readsPods bool) *places {
	return &places{
		groups: of, readsPods: readsPods, awaited: awaited{until: map[string]time.Time{}},
		nodes: map[string]convert.Node{}, zones: map[string]map[string]int{}, pods: map[convert.Name]convert.Pod{},
	}
}

// enterPod enters a pod, or its removal.
func (p *places) enterPod(o object) {
	old, had := p.pods[o.Name]
	pod, is := o.content.(convert.Pod)
	if had == is && old.Same(pod) {
		return
	}
	delete(p.pods, o.Name)
	if is {
		p.pods[o.Name] = pod
		p.awaited.end(pod.UID)
		p.touch(p.index.PodChanged(pod.UID))
	}
	if had && old.UID != pod.UID {
		p.touch(p.index.PodChanged(old.UID))
	}
}

// enterNode enters a node, or its removal.
func (p *places) enterNode(o object) {
	name := o.Name.Name
	old, had := p.nodes[name]
	n, is := o.content.(convert.Node)
	if had == is && old == n {
		return
	}
	p.region(old, had, -1)
	delete(p.nodes, name)
	if is {
		p.nodes[name] = n
		p.region(n, true, 1)
	}
	p.touch(p.index.NodeChanged(name))
}

// region counts the region that a node reports for its zone.
func (p *places) region(n convert.Node, counts bool, by int) {
	zone, region := n.Locality.Zone, n.Locality.Region
	if !counts || zone == "" || region == "" {
		return
	}
	before := p.Region(zone)
	if p.zones[zone] == nil {
		p.zones[zone] = map[string]int{}
	}
	if p.zones[zone][region] += by; p.zones[zone][region] == 0 {
		delete(p.zones[zone], region)
	}
	if p.Region(zone) != before {
		p.touch(p.index.ZoneChanged(zone))
	}
}

func (p *places) touch(changed iter.Seq[*convert.Group]) {
	for g := range changed {
		p.groups.Touch(g.Name())
	}
}

// await begins to await the unknown pods that no other slice has.
func (p *places) await(s *convert.Slice, at time.Time) {
	if !p.readsPods {
		return
	}
	for pod := range s.Pods() {
		if known := p.pods[pod.Name]; known.UID != pod.UID && !p.index.HasPod(pod.UID) {
			p.awaited.begin(pod.UID, at.Add(longestAwait))
		}
	}
}

// lapse stops awaiting pods that did not come, and returns the time until the next
// deadline, and whether it stopped any.
func (p *places) lapse(now time.Time) (next time.Duration, some bool) {
	uids, at, ok := p.awaited.lapsed(now)
	for _, uid := range uids {
		p.touch(p.index.PodChanged(uid))
	}
	if next = time.Hour; ok {
		next = at.Sub(now)
	}
	return next, len(uids) > 0
}

// Awaits implements [convert.Places].
func (p *places) Awaits(uid string) bool {
	_, is := p.awaited.until[uid]
	return is
}

// Node implements [convert.Places].
func (p *places) Node(name string) (model.Locality, bool) {
	n, known := p.nodes[name]
	return n.Locality, known
}

// Region implements [convert.Places].
func (p *places) Region(zone string) string {
	regions := slices.Sorted(maps.Keys(p.zones[zone]))
	if len(regions) == 0 {
		return ""
	}
	return regions[0]
}

// Pod implements [convert.Places].
func (p *places) Pod(name convert.Name) (convert.Pod, bool) {
	pod, known := p.pods[name]
	return pod, known
}
