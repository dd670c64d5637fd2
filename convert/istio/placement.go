package istio

import (
	"cmp"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Placement is which object each endpoint of a service stands in. It follows the
// service at the cost of what changes: the place of an endpoint depends on the endpoint
// itself, on those with its address, and on how many objects there are. Whenever
// there has to be another number of them, or anything is unclear, [Placement.Update]
// gives up, and the draft of the whole service begins anew: so there is one layout,
// and this only spares doing it. It belongs to one goroutine at a time.
type Placement struct {
	layout    Layout
	service   *catalog.Service
	ports     []model.Port
	left      map[string]int // reason → endpoints
	endpoints int

	entries   []part         // the ServiceEntries, in order
	at        map[string]int // by name: which of these
	groups    map[string]*placedGroup
	workloads map[string]endpoint // by name of the object; nil if all are inline
	selector  map[string]string   // of these
}

// placedGroup is a group, and which of the entries is the first of its parts.
type placedGroup struct {
	group
	from int
}

// PartName names an object of a service.
type PartName struct {
	Kind Kind
	Name string
}

// Placement returns where the endpoints of the draft stand. It is nil if that cannot
// be followed: names to look up are a part of the definition, and an object that is
// too large is divided by what is said of all endpoints in it.
func (d Draft) Placement() *Placement {
	enlarged := slices.ContainsFunc(d.groups, func(g group) bool { return g.enlarged })
	if d.Invalid != "" || d.service.Resolution != model.ResolutionStatic || d.layout.ShardSize == 0 || enlarged {
		return nil
	}
	p := &Placement{layout: d.layout, service: d.service, ports: d.ports, left: d.left, endpoints: d.endpoints}
	if d.layout.Workloads != nil && TakesWorkloads(d.service) {
		p.workloads, p.selector = make(map[string]endpoint, d.endpoints), d.layout.Selector(d.service.Key.Host)
	}
	p.at, p.groups = map[string]int{}, map[string]*placedGroup{}
	for _, made := range d.Parts {
		if made.Kind == WorkloadEntry {
			p.workloads[made.Name] = made.part.endpoints[0]
			continue
		}
		p.at[made.Name] = len(p.entries)
		p.entries = append(p.entries, made.part)
	}
	for _, g := range d.groups {
		p.groups[g.serves] = &placedGroup{g, p.at[g.first]}
	}
	return p
}

// Service is the one that the placement is of, as it was at the last update.
func (p *Placement) Service() *catalog.Service { return p.service }

// Selects reports whether endpoints are objects of their own.
func (p *Placement) Selects() bool { return p.workloads != nil }

// LeftOut counts the endpoints that are not written, and says why.
func (p *Placement) LeftOut() []LeftOut { return leftOut(p.left) }

// Parts returns the objects of some names, as far as there are such, in the order of
// the draft.
func (p *Placement) Parts(names []PartName) []DraftPart {
	var workloads, entries []part
	for _, n := range names {
		if e, ok := p.workloads[n.Name]; ok && n.Kind == WorkloadEntry {
			workloads = append(workloads, workloadPart(n.Name, p.ports, []endpoint{e}, p.selector))
		} else if i, ok := p.at[n.Name]; ok && n.Kind == ServiceEntry {
			entries = append(entries, p.entries[i])
		}
	}
	slices.SortFunc(workloads, func(a, b part) int { return a.endpoints[0].compare(b.endpoints[0]) })
	slices.SortFunc(entries, func(a, b part) int { return cmp.Compare(p.at[a.name], p.at[b.name]) })
	parts := make([]DraftPart, 0, len(names))
	for _, made := range slices.Concat(workloads, entries) {
		parts = append(parts, made.draft(p.service, p.endpoints))
	}
	return parts
}
