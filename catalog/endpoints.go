package catalog

import (
	"cmp"
	"iter"
	"maps"

	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Endpoints are the endpoints that serve one port of a service. Several
// records may speak of one endpoint; the order they are kept in is the merge
// rule, so the first of them is the one that counts. Endpoints are immutable,
// and a nil pointer is an empty set.
type Endpoints struct {
	Tally

	claims immutable.Map[claim, *Instance]
}

// Tally counts distinct addresses and ports.
type Tally struct {
	Total   int
	Healthy int
	Sockets int // unix sockets, healthy or not
}

// Counts returns the tally; that of a nil pointer is zero.
func (e *Endpoints) Counts() Tally {
	if e == nil {
		return Tally{}
	}
	return e.Tally
}

// claim is one record's word that an address and port serve. Claims of one
// endpoint are ordered by the rank of their source, then by record.
type claim struct {
	address string
	port    uint32
	rank    int
	record  model.Ref
}

func (c claim) compare(o claim) int {
	return cmp.Or(
		cmp.Compare(c.address, o.address), cmp.Compare(c.port, o.port),
		cmp.Compare(c.rank, o.rank), c.record.Compare(o.record),
	)
}

func (c claim) sameEndpoint(o claim) bool { return c.address == o.address && c.port == o.port }

// All yields each endpoint once, with the attributes of the first record that
// speaks of it, ordered by address and port.
func (e *Endpoints) All() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		var last claim
		first := true
		for endpoint, c := range e.each() {
			if !first && c.sameEndpoint(last) {
				continue
			}
			if !yield(endpoint) {
				return
			}
			first, last = false, c
		}
	}
}

// Claims yields every record's word, endpoint by endpoint, the one that counts first.
func (e *Endpoints) Claims() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		for endpoint := range e.each() {
			if !yield(endpoint) {
				return
			}
		}
	}
}

func (e *Endpoints) each() iter.Seq2[Endpoint, claim] {
	return func(yield func(Endpoint, claim) bool) {
		if e == nil {
			return
		}
		for c, instance := range e.claims.All() {
			if !yield(Endpoint{c.port, instance}, c) {
				return
			}
		}
	}
}

// edit is a change of one service's endpoints in the making.
type edit struct {
	before  map[uint32]*Endpoints
	ports   map[uint32]*portEdit
	changed map[EndpointID]struct{} // endpoints whose counting claim changed
}

type portEdit struct {
	claims *immutable.Editor[claim, *Instance]
	tally  Tally
}

func newEdit(before map[uint32]*Endpoints) *edit {
	return &edit{before, map[uint32]*portEdit{}, map[EndpointID]struct{}{}}
}

func (e *edit) port(number uint32) *portEdit {
	if p, ok := e.ports[number]; ok {
		return p
	}
	p := &portEdit{}
	if b := e.before[number]; b != nil {
		p.claims, p.tally = b.claims.Edit(), b.Tally
	} else {
		p.claims = immutable.New[claim, *Instance](claim.compare).Edit()
	}
	e.ports[number] = p
	return p
}

// set adds a claim, or with a nil instance removes it.
func (e *edit) set(servicePort uint32, c claim, instance *Instance) {
	p := e.port(servicePort)
	before := counting(p.claims.View(), c)
	if instance != nil {
		p.claims.Set(c, instance)
	} else {
		p.claims.Delete(c)
	}
	after := counting(p.claims.View(), c)
	if before == after {
		return
	}
	p.tally.count(before, c, -1)
	p.tally.count(after, c, +1)
	e.changed[EndpointID{servicePort, c.address, c.port}] = struct{}{}
}

// counting returns the instance that counts for c's endpoint; nil if none does.
func counting(claims immutable.Map[claim, *Instance], c claim) *Instance {
	for first, instance := range claims.From(claim{address: c.address, port: c.port, rank: -1}) {
		if first.sameEndpoint(c) {
			return instance
		}
		break
	}
	return nil
}

func (t *Tally) count(instance *Instance, c claim, by int) {
	if instance == nil {
		return
	}
	t.Total += by
	if instance.Health == model.Healthy {
		t.Healthy += by
	}
	if c.port == 0 {
		t.Sockets += by
	}
}

// finish returns the endpoints by port. Ports that were not edited keep their
// pointers. Those that were get a new one even when only a claim that does not
// count changed, for it may count one day.
func (e *edit) finish() map[uint32]*Endpoints {
	after := make(map[uint32]*Endpoints, len(e.before))
	maps.Copy(after, e.before)
	for number, p := range e.ports {
		if claims := p.claims.Map(); claims.Len() > 0 {
			after[number] = &Endpoints{Tally: p.tally, claims: claims}
		} else {
			delete(after, number)
		}
	}
	return after
}

// reconcile compares endpoints that were built anew with those before: where
// every claim is the same it puts the old pointer back, and it returns the
// endpoints that changed.
func reconcile(before, after map[uint32]*Endpoints) map[EndpointID]struct{} {
	for number, now := range after {
		if was := before[number]; was.sameClaims(now) {
			after[number] = was
		}
	}
	return compare(before, after)
}

// compare returns the endpoints in which two sets of ports differ.
func compare(before, after map[uint32]*Endpoints) map[EndpointID]struct{} {
	changed := map[EndpointID]struct{}{}
	for number, now := range after {
		if was := before[number]; was != now {
			was.differences(now, number, changed)
		}
	}
	for number, was := range before {
		if after[number] == nil {
			was.differences(nil, number, changed)
		}
	}
	return changed
}

func (e *Endpoints) sameClaims(o *Endpoints) bool {
	if e == nil || o == nil || e.claims.Len() != o.claims.Len() {
		return e == o
	}
	next, stop := iter.Pull2(o.claims.All())
	defer stop()
	for c, instance := range e.claims.All() {
		if oc, other, _ := next(); c != oc || !instance.same(other) {
			return false
		}
	}
	return true
}

// differences adds to changed the endpoints whose counting instance differs.
func (e *Endpoints) differences(o *Endpoints, servicePort uint32, changed map[EndpointID]struct{}) {
	seen := map[EndpointID]*Instance{}
	for endpoint := range e.All() {
		seen[EndpointID{servicePort, endpoint.Address, endpoint.Port}] = endpoint.Instance
	}
	for endpoint := range o.All() {
		id := EndpointID{servicePort, endpoint.Address, endpoint.Port}
		if endpoint.same(seen[id]) {
			delete(seen, id)
		} else {
			changed[id] = struct{}{}
		}
	}
	for id := range seen {
		changed[id] = struct{}{}
	}
}
