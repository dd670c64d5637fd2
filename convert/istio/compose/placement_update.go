package compose

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// tooMuch is the divisor of a service's endpoints that gives the most changed addresses of
// an update. Above that, placing all of them anew costs less.
const tooMuch = 4

// Update moves the placement to a new version of the service, in which only the endpoints
// at some addresses may differ. exists replaces [Layout.Exists]. It returns the objects
// that were changed or removed. If it returns false, the whole service has to be drafted
// anew, and the placement must not be used any more.
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
		if name.Kind == istio.ServiceEntry && p.entries[p.at[name.Name]].isTooLarge() {
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

// replaceWorkloads replaces the endpoints with objects of their own, and returns the
// others.
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
			changed[PartName{istio.WorkloadEntry, name}] = struct{}{}
		}
	}
	for i, name := range after {
		if known, ok := p.workloads[name]; !ok || !known.Same(is[i].Instance) || known.Network != is[i].Network || !slices.Equal(known.ports, is[i].ports) {
			p.workloads[name] = is[i]
			changed[PartName{istio.WorkloadEntry, name}] = struct{}{}
		}
	}
	return wasInline, isInline
}

// divide separates endpoints that serve every port from the others.
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

// place returns the group and part of an inline endpoint: nil if there is no group of its
// ports.
func (p *Placement) place(e endpoint) (*placedGroup, *part) {
	g := p.groups[e.serves()]
	if g == nil {
		return nil, nil
	}
	return g, &p.entries[g.from+bucket(e, g.parts)]
}

// withdraw removes an inline endpoint. It reports false if that changes the layout: the
// last endpoint of a group removes the group's objects.
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
	return g.endpoints > 0 || g.from == 0 && p.workloads == nil // the first object always exists
}

// enter adds an inline endpoint.
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
