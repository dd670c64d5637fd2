package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/catalog/stale"
	"github.com/isthmus-mesh/isthmus/model"
)

// pool is the endpoints of a port that a split divides.
type pool struct {
	own    *Endpoints // of the service itself
	others []other    // by backend; zero for a backend of own endpoints
	stale  stale.Sources
}

// other is the endpoints of another service that is a backend. They are the joined ones, so
// a split of that service does not matter.
type other struct {
	endpoints *Endpoints
	port      uint32 // of that service
	leftOut   string // why the service is left out; empty if it is not
}

// equal reports whether both are the same endpoints, with the same health.
func (p pool) equal(o pool, s *split.Split) bool {
	same := p.own == o.own && slices.Equal(p.others, o.others)
	if !same || p.stale.Equal(o.stale) {
		return same
	}
	next, stop := iter.Pull(o.each(s))
	defer stop()
	for m := range p.each(s) {
		if other, _ := next(); m.Health != other.Health {
			return false
		}
	}
	return true
}

func (p pool) isEmpty() bool {
	return p.own == nil && !slices.ContainsFunc(p.others, func(o other) bool { return o != other{} })
}

// backed is an endpoint with the backends that have it.
type backed struct {
	claim // the first
	Endpoint
	weights []uint32 // by backend; 0 if it does not have the endpoint
}

// at returns the endpoints at c's address and port. The first claim of all decides the attributes of an
// endpoint, and the first in a backend its weight there.
func (p pool) at(s *split.Split, c claim) (list []backed) {
	all := p.own.at(c)
	for i := range all {
		all[i].stale = p.stale.Has(all[i].Record.Source)
	}
	for i, o := range p.others {
		for _, one := range o.endpoints.at(c) {
			one.backend, one.stale = i+1, p.stale.Has(one.Record.Source)
			all = append(all, one)
		}
	}
	separate(all)
	each(all, func(claims []said) bool {
		m := backed{claims[0].claim, endpointOf(claims), make([]uint32, len(s.Backends))}
		for _, one := range claims {
			m.join(one, s)
		}
		list = append(list, m)
		return true
	})
	return list
}

// join gives the endpoint to the backends that have it by a claim.
func (m *backed) join(one said, s *split.Split) {
	var of model.ServiceName
	if one.backend > 0 {
		of = s.Backends[one.backend-1].Service
	}
	for i, w := range m.weights {
		if w == 0 && s.Has(i, of, one.Record.Source, one.Labels) {
			m.weights[i] = max(one.Weight, 1)
		}
	}
}

// each yields each endpoint once.
func (p pool) each(s *split.Split) iter.Seq[backed] {
	return func(yield func(backed) bool) {
		for _, c := range p.sockets() {
			for _, m := range p.at(s, c) {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// sockets returns a claim for each address and port, in order.
func (p pool) sockets() (list []claim) {
	for _, o := range append([]other{{endpoints: p.own}}, p.others...) {
		for c := range o.endpoints.all() {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, compareSockets)
	return slices.CompactFunc(list, claim.sameSocket)
}

func compareSockets(a, b claim) int {
	return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.port, b.port))
}

// poolOf returns the endpoints that the split of a service divides at a port.
func (d dividing) poolOf(root *Service, port model.Port) pool {
	p := pool{own: root.joined[port.Number], stale: d.stale}
	for i, b := range root.Split.Backends {
		if b.Service == (model.ServiceName{}) {
			continue
		}
		if p.others == nil {
			p.others = make([]other, len(root.Split.Backends))
		}
		p.others[i] = d.other(root, port, ServiceKey(b.Service))
	}
	return p
}

// other returns the endpoints of another service for a port of a service.
func (d dividing) other(root *Service, port model.Port, key ServiceKey) other {
	service, _ := d.before.Get(key)
	if t := d.touched[key]; t != nil {
		service = t.now
	}
	if service == nil {
		return other{leftOut: fmt.Sprintf("no source lists it in namespace %q", key.Namespace)}
	}
	differ := func(field string, its, want any) other {
		return other{leftOut: fmt.Sprintf("its %s is %v, that of %s is %v", field, its, root.Key.Host, want)}
	}
	at := slices.IndexFunc(service.Ports, func(p model.Port) bool { return p.Name == port.Name && p.Name != "" })
	if at < 0 {
		at = slices.IndexFunc(service.Ports, func(p model.Port) bool { return p.Number == port.Number })
	}
	switch {
	case !service.VisibleTo(root.Key.Namespace, key.Namespace):
		return other{leftOut: fmt.Sprintf("it is not exported to namespace %q", root.Key.Namespace)}
	case service.Location != root.Location: // decides whether clients use mutual TLS
		return differ("location", service.Location, root.Location)
	case !service.SubjectAltNames.Equal(root.SubjectAltNames):
		return differ("list of subjectAltNames", service.SubjectAltNames.Slice(), root.SubjectAltNames.Slice())
	case at < 0:
		return other{leftOut: fmt.Sprintf("it has neither a port named %q nor a port %d", port.Name, port.Number)}
	case service.ResolutionAt(service.Ports[at].Number) != root.ResolutionAt(port.Number):
		return differ("resolution", service.ResolutionAt(service.Ports[at].Number), root.ResolutionAt(port.Number))
	case service.Ports[at].Protocol != port.Protocol:
		return differ(fmt.Sprintf("protocol at port %d", service.Ports[at].Number), service.Ports[at].Protocol, port.Protocol)
	}
	number := service.Ports[at].Number
	return other{endpoints: service.joined[number], port: number}
}

// differing returns the endpoints in which the pool of a port may differ from the one before
// the step; nil means all.
func (d dividing) differing(t *touched, port model.Port, before, now pool) []claim {
	if !before.stale.Equal(now.stale) {
		return nil
	}
	some := []claim{}
	if before.own != now.own {
		written, known := t.written[port.Number]
		if !known {
			return nil
		}
		some = append(some, written...)
	}
	for i, o := range now.others {
		if o == before.others[i] {
			continue
		}
		with := d.touched[ServiceKey(t.now.Split.Backends[i].Service)]
		if with == nil || with.old == nil || with.now == nil || with.old.Definition != with.now.Definition {
			return nil
		}
		written, known := with.written[o.port]
		if !known {
			return nil
		}
		some = append(some, written...)
	}
	return some
}
