package istio

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// tooMuch is the share of a service's endpoints, one of so many, above which it costs
// less to place all of them anew.
const tooMuch = 4

// Update has the placement be that of the service as it is now, of which only the
// endpoints at some addresses may differ. exists takes the place of [Layout.Exists]. It
// returns the objects that are made of something else than before, or that there are not
// any more. If it returns false, all has to be drafted anew, and the placement is of
// no use any more.
func (p *Placement) Update(s *catalog.Service, addresses map[string]struct{}, exists func(name string) bool) (map[PartName]struct{}, bool) {
	if s.Definition != p.service.Definition || len(addresses) > 1 && len(addresses)*tooMuch > p.endpoints {
		return nil, false
	}
	changed := map[PartName]struct{}{}
	for address := range addresses {
		was, is := gatherAt(p.service, p.ports, address), gatherAt(s, p.ports, address)
		p.count(was, -1)
		p.count(is, +1)
		if !p.replace(was.endpoints, is.endpoints, changed) {
			return nil, false
		}
	}
	p.service, p.layout.Exists = s, exists
	return changed, p.isInShape(changed)
}

// isInShape reports whether there are as many objects as there should be.
func (p *Placement) isInShape(changed map[PartName]struct{}) bool {
	for _, g := range p.groups {
		if g.parts != p.layout.partsOf(p.service.Key.Host, g.group) {
			return false
		}
	}
	for name := range changed {
		if name.Kind == ServiceEntry && p.entries[p.at[name.Name]].isTooLarge() {
			return false
		}
	}
	return true
}

func (p *Placement) count(g gathered, by int) {
	p.endpoints += by * len(g.endpoints)
	for reason, n := range g.left {
		if p.left[reason] += by * n; p.left[reason] == 0 {
			delete(p.left, reason)
		}
	}
}

// replace replaces the endpoints of one address.
func (p *Placement) replace(was, is []endpoint, changed map[PartName]struct{}) bool {
	was, is = p.replaceWorkloads(was, is, changed)
	for _, e := range was {
		if !p.withdraw(e, changed) {
			return false
		}
	}
	for _, e := range is {
		if !p.enter(e, changed) {
			return false
		}
	}
	return true
}

// replaceWorkloads replaces those that are objects of their own, and returns the others.
func (p *Placement) replaceWorkloads(was, is []endpoint, changed map[PartName]struct{}) (wasInline, isInline []endpoint) {
	if p.workloads == nil {
		return was, is
	}
	was, wasInline = p.divide(was)
	is, isInline = p.divide(is)
	before, after := workloadNames(p.service.Key.Host, was), workloadNames(p.service.Key.Host, is)
	for _, name := range before {
		if !slices.Contains(after, name) {
			delete(p.workloads, name)
			changed[PartName{WorkloadEntry, name}] = struct{}{}
		}
	}
	for i, name := range after {
		if known, ok := p.workloads[name]; !ok || known.Instance != is[i].Instance || !slices.Equal(known.ports, is[i].ports) {
			p.workloads[name] = is[i]
			changed[PartName{WorkloadEntry, name}] = struct{}{}
		}
	}
	return wasInline, isInline
}

// divide tells those that serve every port from the others.
func (p *Placement) divide(endpoints []endpoint) (full, partly []endpoint) {
	for _, e := range endpoints {
		if e.servesAll(p.ports) {
			full = append(full, e)
		} else {
			partly = append(partly, e)
		}
	}
	return full, partly
}

// place returns where an inline endpoint stands: nil if there is no group of its ports.
func (p *Placement) place(e endpoint) (*placedGroup, *part) {
	g := p.groups[e.serves()]
	if g == nil {
		return nil, nil
	}
	return g, &p.entries[g.from+bucket(e, g.parts)]
}

// withdraw takes an inline endpoint out. The last of a group takes its objects with it.
func (p *Placement) withdraw(e endpoint, changed map[PartName]struct{}) bool {
	g, in := p.place(e)
	if g == nil {
		return false
	}
	at, found := slices.BinarySearchFunc(in.endpoints, e, endpoint.compare)
	if !found {
		return false
	}
	in.change(changed)
	in.endpoints = slices.Delete(in.endpoints, at, at+1)
	g.endpoints--
	return g.endpoints > 0 || g.from == 0 && p.workloads == nil // the first is there whatever serves it
}

// enter puts an inline endpoint in.
func (p *Placement) enter(e endpoint, changed map[PartName]struct{}) bool {
	g, in := p.place(e)
	if g == nil {
		return false
	}
	at, found := slices.BinarySearchFunc(in.endpoints, e, endpoint.compare)
	if found {
		return false
	}
	in.change(changed)
	in.endpoints = slices.Insert(in.endpoints, at, e)
	g.endpoints++
	return true
}

// change notes that a part changes. Drafts that were made of it keep what it was.
func (p *part) change(changed map[PartName]struct{}) {
	name := PartName{ServiceEntry, p.name}
	if _, already := changed[name]; !already {
		p.endpoints = slices.Clone(p.endpoints)
		changed[name] = struct{}{}
	}
}
