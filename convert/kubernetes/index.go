package kubernetes

import "iter"

// Index finds the groups that have a pod, or endpoints on a node or in a zone. A changed
// pod, node or zone then costs no look-up in other groups. The zero Index is empty.
type Index struct {
	pods, nodes, zones count
}

// count is the number of slice endpoints of each group with a key.
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

// enter replaces a group's slice in the index; either may be nil.
func (x *Index) enter(g *Group, old, now *Slice) {
	x.addAll(g, now, 1) // first, so that common keys are not removed in between
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

// PodChanged reports a change of a pod to its groups, and yields them.
func (x *Index) PodChanged(uid string) iter.Seq[*Group] {
	return x.concerned(x.pods[uid], func(g *Group) { g.podChanged(uid) })
}

// NodeChanged reports a change of a node's locality to its groups, and yields them.
func (x *Index) NodeChanged(name string) iter.Seq[*Group] {
	return x.concerned(x.nodes[name], func(g *Group) {
		g.nodeChanged(func(e *sliceEndpoint) bool { return e.node == name })
	})
}

// ZoneChanged reports a change of a zone's region to its groups, and yields them.
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
