package kubernetes

import "iter"

// Index finds the groups that have a pod, or endpoints on a node or in a zone, so that
// one that changes is looked up nowhere else. The zero Index is empty.
type Index struct {
	pods, nodes, zones count
}

// count has, by a key, how many endpoints in slices of each group have it.
type count map[string]map[*Group]int

func (c *count) add(key string, g *Group, n int) {
	if key == "" {
		return
	}
	if *c == nil {
		*c = count{}
	}
	groups := (*c)[key]
	if groups == nil {
		groups = map[*Group]int{}
		(*c)[key] = groups
	}
	if groups[g] += n; groups[g] == 0 {
		delete(groups, g)
	}
	if len(groups) == 0 {
		delete(*c, key)
	}
}

// enter replaces what a group has of a slice; either may be nil.
func (x *Index) enter(g *Group, old, now *Slice) {
	x.addAll(g, now, 1) // first, so that what stays is not removed in between
	x.addAll(g, old, -1)
}

func (x *Index) addAll(g *Group, s *Slice, n int) {
	if s == nil {
		return
	}
	for i := range s.endpoints {
		e := &s.endpoints[i]
		if e.pod != "" {
			x.pods.add(e.uid, g, n)
		}
		x.nodes.add(e.node, g, n)
		x.zones.add(e.zone, g, n)
	}
}

// HasPod reports whether any slice has a pod of a UID.
func (x *Index) HasPod(uid string) bool { return len(x.pods[uid]) > 0 }

// PodChanged says that something of a pod changed. It yields the groups concerned.
func (x *Index) PodChanged(uid string) iter.Seq[*Group] {
	return x.concerned(x.pods[uid], func(g *Group) { g.podChanged(uid) })
}

// NodeChanged says that the locality of a node changed. It yields the groups concerned.
func (x *Index) NodeChanged(name string) iter.Seq[*Group] {
	return x.concerned(x.nodes[name], func(g *Group) {
		g.nodeChanged(func(e *sliceEndpoint) bool { return e.node == name })
	})
}

// ZoneChanged says that the region of a zone changed. It yields the groups concerned.
func (x *Index) ZoneChanged(zone string) iter.Seq[*Group] {
	return x.concerned(x.zones[zone], func(g *Group) {
		g.nodeChanged(func(e *sliceEndpoint) bool { return e.zone == zone })
	})
}

func (x *Index) concerned(groups map[*Group]int, change func(*Group)) iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for g := range groups {
			change(g)
			if !yield(g) {
				return
			}
		}
	}
}
