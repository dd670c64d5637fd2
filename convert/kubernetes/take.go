package kubernetes

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Change is the difference since the last Take: objects to be replaced or deleted as a
// whole, and single endpoints of the Service.
type Change struct {
	Upserts      []model.Object
	Deletes      []model.Ref
	OwnedUpserts []model.Record
	OwnedDeletes []model.Ref
}

// Take returns the difference since the last call, and clears it.
func (g *Group) Take() (change Change) {
	if g.whole {
		return g.takeAll()
	}
	hosts := map[string]struct{}{}
	for _, address := range slices.Sorted(maps.Keys(g.dirty)) {
		g.takeAddress(address, &change, hosts)
	}
	clear(g.dirty)
	g.takeNamed(hosts, &change)
	return change
}

// takeAddress takes the endpoints of one address, and notes their old and new host names.
func (g *Group) takeAddress(address string, change *Change, hosts map[string]struct{}) {
	old := g.records[address]
	now := g.endpointsAt(address, old)
	g.keep(address, now)
	g.rename(address, hosts)
	if g.service == nil || g.service.External != "" {
		return
	}
	for _, e := range now {
		at := slices.IndexFunc(old, func(o endpoint) bool { return o.name == e.name })
		if at < 0 || !old[at].spec.Equal(e.spec) {
			change.OwnedUpserts = append(change.OwnedUpserts, record(g.name.Ref(), e))
		}
	}
	for _, o := range old {
		if !slices.ContainsFunc(now, func(e endpoint) bool { return e.name == o.name }) {
			change.OwnedDeletes = append(change.OwnedDeletes, record(g.name.Ref(), o).Ref)
		}
	}
}

func (g *Group) keep(address string, now []endpoint) {
	if len(now) == 0 {
		delete(g.records, address)
		return
	}
	g.records[address] = now
}

// takeAll makes everything anew.
func (g *Group) takeAll() (change Change) {
	g.whole = false
	before := g.records
	g.records = map[string][]endpoint{}
	hosts := map[string]struct{}{}
	for host := range g.named {
		hosts[host] = struct{}{}
	}
	for address := range g.addresses() {
		g.keep(address, g.endpointsAt(address, before[address]))
		g.rename(address, hosts)
	}
	for address := range g.dirty {
		if len(g.claims[address]) == 0 {
			g.rename(address, hosts)
		}
	}
	clear(g.dirty)
	switch {
	case g.service != nil:
		change.Upserts = append(change.Upserts, g.object())
	case g.passed:
		change.Deletes = append(change.Deletes, g.name.Ref())
	}
	g.passed = g.service != nil
	g.takeNamed(hosts, &change)
	return change
}

// Objects returns all objects, for a listing. Nothing is left to be taken.
func (g *Group) Objects() []model.Object {
	g.whole = true
	change := g.takeAll() // also without a Service: the listing shows that it is gone
	return change.Upserts
}

// object returns the Service with its endpoints.
func (g *Group) object() model.Object {
	object := model.Object{Record: model.Record{Ref: g.name.Ref(), Place: Place, Spec: g.service.Spec}}
	if g.service.External != "" {
		return g.external(object)
	}
	for _, address := range slices.Sorted(maps.Keys(g.records)) {
		for _, e := range g.records[address] {
			object.Owned = append(object.Owned, record(g.name.Ref(), e))
		}
	}
	return object
}

// external gives a Service that is an alias of a host its one endpoint.
func (g *Group) external(object model.Object) model.Object {
	e := endpoint{name: g.service.External, spec: model.Endpoint{Address: g.service.External}}
	object.Owned = []model.Record{record(g.name.Ref(), e)}
	return object
}

func record(owner model.Ref, e endpoint) model.Record {
	ref := owner
	ref.Kind, ref.Name = model.KindEndpoint, owner.Name+"/"+e.name
	return model.Record{Ref: ref, Owner: owner, Spec: e.spec}
}
