package compose

import (
	"cmp"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// Placement maps each endpoint of a service to its object. It follows the service at the
// cost of the changes: the place of an endpoint depends on the endpoint itself, on others
// with its address, and on the number of objects. If that number has to change, or anything
// is unclear, [Placement.Update] gives up, and a new draft of the whole service follows.
// There is thus one layout, and a placement only saves repeating it. One goroutine may use
// it at a time.
type Placement struct {
	layout    Layout
	service   *catalog.Service
	ports     []model.Port
	left      map[string]int // reason → endpoints
	endpoints int

	entries   []part         // the ServiceEntries, in order
	at        map[string]int // by name: the index in entries
	groups    map[string]*placedGroup
	workloads map[string]endpoint // by name of the object; nil if all are inline
	selector  map[string]string   // of the workloads
}

// placedGroup is a group with the index of its first part in the entries.
type placedGroup struct {
	group
	from int
}

// PartName names an object of a service.
type PartName struct {
	Kind istio.Kind
	Name string
}

// Placement returns the placement of the draft's endpoints. It is nil in two cases. DNS
// names are a part of the definition. The division of an oversized object depends on the
// attributes of all its endpoints.
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
		if made.Kind == istio.WorkloadEntry {
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

// Service returns the service of the placement, as of the last update.
func (p *Placement) Service() *catalog.Service { return p.service }

// Selects reports whether endpoints are objects of their own.
func (p *Placement) Selects() bool { return p.workloads != nil }

// LeftOut counts the endpoints that are not written, by reason.
func (p *Placement) LeftOut() []LeftOut { return leftOut(p.left) }

// Parts returns the existing objects among some names, in the order of the draft.
func (p *Placement) Parts(names []PartName) []DraftPart {
	var workloads, entries []part
	for _, n := range names {
		if e, ok := p.workloads[n.Name]; ok && n.Kind == istio.WorkloadEntry {
			workloads = append(workloads, workloadPart(n.Name, p.ports, []endpoint{e}, p.selector))
		} else if i, ok := p.at[n.Name]; ok && n.Kind == istio.ServiceEntry {
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
