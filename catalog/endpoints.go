package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/catalog/moment"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Endpoints are the endpoints that serve one port of a service. Several records may claim
// one endpoint. They are kept in merge order, so the first of them counts. Endpoints are
// immutable, and a nil pointer is an empty set.
type Endpoints struct {
	EndpointCounts

	claims   immutable.Map[claim, *Instance]
	weights  *weights  // nil if every endpoint weighs 1
	accounts *accounts // nil if no endpoint has one
}

// EndpointCounts counts distinct addresses and ports.
type EndpointCounts struct {
	Total   int
	Healthy int
	Sockets int // unix sockets, healthy or not
	// Networked counts the endpoints with a network, healthy or not.
	Networked int
	Local     int // at local addresses, healthy or not
}

// Counts returns the counts; a nil pointer has none.
func (e *Endpoints) Counts() EndpointCounts {
	if e == nil {
		return EndpointCounts{}
	}
	return e.EndpointCounts
}

// claim is one record's claim that an address and port serve. Claims of one endpoint are ordered by
// the rank of their source, then the newest registration first, then one that serves, then by record.
// There is one for each endpoint of a mesh; two claims are equal when compare returns 0.
type claim struct {
	address string
	port    uint32
	rank    int32
	by      *Instance // nil in a key that searches the first claim of an endpoint
}

func (c claim) compare(o claim) int {
	if at := cmp.Or(cmp.Compare(c.address, o.address), cmp.Compare(c.port, o.port), cmp.Compare(c.rank, o.rank)); at != 0 {
		return at // skip the rest: every look-up waits for this comparison
	}
	return cmp.Or(cmp.Compare(c.by.Record.Source, o.by.Record.Source), cmp.Compare(o.by.Registered, c.by.Registered),
		trueFirst(c.by.Health == model.Healthy, o.by.Health == model.Healthy), c.by.Record.Compare(o.by.Record))
}

func (c claim) sameEndpoint(o claim) bool { return c.address == o.address && c.port == o.port }

// All yields each endpoint once, with the attributes of its first record. The endpoints are
// ordered by address and port.
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

// Get returns the endpoint of an address and port, as [Endpoints.All] yields it.
func (e *Endpoints) Get(address string, port uint32) (Endpoint, bool) {
	if e == nil {
		return Endpoint{}, false
	}
	instance := counting(e.claims, claim{address: ip.Place(address), port: port})
	return Endpoint{port, instance}, instance != nil
}

// At yields the endpoints of an address, as [Endpoints.All] yields them. Its cost is the
// endpoints at that address.
func (e *Endpoints) At(address string) iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		if e == nil {
			return
		}
		address := ip.Place(address)
		var last claim
		first := true
		for c, instance := range e.claims.From(claim{address: address, rank: -1}) {
			if c.address != address {
				return
			}
			if (first || !c.sameEndpoint(last)) && !yield(Endpoint{c.port, instance}) {
				return
			}
			first, last = false, c
		}
	}
}

// Claims yields the claims of all records, by endpoint, the one that counts first.
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

// eachAt yields the claims of c's endpoint.
func (e *Endpoints) eachAt(c claim) iter.Seq2[Endpoint, claim] {
	return func(yield func(Endpoint, claim) bool) {
		if e == nil {
			return
		}
		for at, instance := range e.claims.From(claim{address: c.address, port: c.port, rank: -1}) {
			if !at.sameEndpoint(c) || !yield(Endpoint{at.port, instance}, at) {
				return
			}
		}
	}
}

// byAddress yields the counts of the endpoints of each address.
func (e *Endpoints) byAddress() iter.Seq2[string, EndpointCounts] {
	return func(yield func(string, EndpointCounts) bool) {
		var tally EndpointCounts
		address := ""
		for endpoint := range e.All() {
			if ip.Place(endpoint.Address) != address && tally.Total > 0 {
				if !yield(address, tally) {
					return
				}
				tally = EndpointCounts{}
			}
			address = ip.Place(endpoint.Address)
			tally.count(endpoint.Instance, endpoint.Port, +1)
		}
		if tally.Total > 0 {
			yield(address, tally)
		}
	}
}

// edit is a change of one service's endpoints in the making.
type edit struct {
	at     moment.Moment // of the commit
	before map[uint32]*Endpoints
	ports  map[uint32]*portEdit
}

type portEdit struct {
	before *Endpoints
	claims *immutable.Editor[claim, *Instance]
	tally  EndpointCounts
	weighing
	accounts accounting
	// written are the claims that may differ from before. They are not kept if there were no
	// endpoints before.
	written []claim
}

func newEdit(before map[uint32]*Endpoints, at moment.Moment) *edit {
	return &edit{at, before, map[uint32]*portEdit{}}
}

func (e *edit) port(number uint32) *portEdit {
	if p, ok := e.ports[number]; ok {
		return p
	}
	p := &portEdit{before: e.before[number]}
	if b := p.before; b != nil {
		p.claims, p.tally = b.claims.Edit(), b.EndpointCounts
		p.weighing, p.accounts = b.weights.edit(), b.accounts.edit()
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
	p.tally.count(before, c.port, -1)
	p.tally.count(after, c.port, +1)
	p.replace(before, after, (&Endpoints{claims: p.claims.View()}).All())
	p.accounts.replace(before, after)
	if p.before != nil {
		p.written = append(p.written, c)
	}
}

// counting returns the instance that counts for c's endpoint; nil if there is none.
func counting(claims immutable.Map[claim, *Instance], c claim) *Instance {
	_, instance := firstOf(claims, c)
	return instance
}

// firstOf returns the claim that counts for c's endpoint; a nil instance if there is none.
func firstOf(claims immutable.Map[claim, *Instance], c claim) (claim, *Instance) {
	for first, instance := range claims.From(claim{address: c.address, port: c.port, rank: -1}) {
		if first.sameEndpoint(c) {
			return first, instance
		}
		break
	}
	return claim{}, nil
}

func (t *EndpointCounts) count(instance *Instance, port uint32, by int) {
	if instance == nil {
		return
	}
	t.Total += by
	if instance.Health == model.Healthy {
		t.Healthy += by
	}
	if port == 0 {
		t.Sockets += by
	}
	if instance.Network != "" {
		t.Networked += by
	}
	if IsLocal(instance.Endpoint) {
		t.Local += by
	}
}

// finish returns the endpoints by port. Ports without a changed claim keep their pointers.
// Others get a new one even when only a claim that does not count changed, because it may
// count later.
func (e *edit) finish() map[uint32]*Endpoints {
	after := make(map[uint32]*Endpoints, len(e.before))
	maps.Copy(after, e.before)
	for number, p := range e.ports {
		if now := p.finish(e.at); now != nil {
			after[number] = now
		} else {
			delete(after, number)
		}
	}
	return after
}

// written returns the endpoints that may differ from before, by port. A port without
// endpoints before has no entry.
func (e *edit) written() map[uint32][]claim {
	all := make(map[uint32][]claim, len(e.ports))
	for number, p := range e.ports {
		if p.before != nil {
			all[number] = p.written
		}
	}
	return all
}

// changed returns the endpoints in which the edit made a difference.
func (e *edit) changed(after map[uint32]*Endpoints) map[EndpointID]struct{} {
	changed := map[EndpointID]struct{}{}
	for number, p := range e.ports {
		if after[number] != p.before {
			p.differences(after[number], number, changed)
		}
	}
	return changed
}

// finish returns the endpoints before the edit if nothing differs, and nil if there are
// none any more.
func (p *portEdit) finish(at moment.Moment) *Endpoints {
	claims := p.claims.View()
	same := func(c claim) bool {
		was, _ := p.before.claims.Get(c)
		is, _ := claims.Get(c)
		return was.same(is)
	}
	switch {
	case p.before != nil && !slices.ContainsFunc(p.written, func(c claim) bool { return !same(c) }):
		return p.before
	case claims.Len() == 0:
		return nil
	default:
		p.stampLosses(at)
		return &Endpoints{EndpointCounts: p.tally, claims: p.claims.Map(), weights: p.weighing.finish(), accounts: p.accounts.finish()}
	}
}

// stampLosses stamps the endpoints that lost a claim and keep others: no record of them has
// the time of that change. The stamp is lost when the service's endpoints are collected anew
// on another port or in another order.
func (p *portEdit) stampLosses(at moment.Moment) {
	if at == 0 { // unknown
		return
	}
	claims := p.claims.View()
	for _, c := range p.written {
		_, was := p.before.claims.Get(c)
		if _, is := claims.Get(c); is || !was {
			continue
		}
		if first, instance := firstOf(claims, c); instance != nil {
			stamped := *instance
			first.by, stamped.changed = &stamped, at
			p.claims.Set(first, &stamped)
		}
	}
}

// differences adds to changed the endpoints with another counting instance. It compares
// only the written endpoints.
func (p *portEdit) differences(now *Endpoints, servicePort uint32, changed map[EndpointID]struct{}) {
	if p.before == nil || now == nil {
		p.before.differences(now, servicePort, changed)
		return
	}
	for _, c := range p.written {
		if !counting(p.before.claims, c).same(counting(now.claims, c)) {
			changed[EndpointID{servicePort, c.address, c.port}] = struct{}{}
		}
	}
}

// reconcile compares endpoints that were built anew with the previous ones. Where every
// claim is the same it puts the old pointer back. It returns the endpoints that changed.
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
		if oc, other, _ := next(); c.compare(oc) != 0 || !instance.same(other) {
			return false
		}
	}
	return true
}

// differences adds to changed the endpoints with another counting instance.
func (e *Endpoints) differences(o *Endpoints, servicePort uint32, changed map[EndpointID]struct{}) {
	seen := map[EndpointID]*Instance{}
	for endpoint := range e.All() {
		seen[endpoint.ID(servicePort)] = endpoint.Instance
	}
	for endpoint := range o.All() {
		id := endpoint.ID(servicePort)
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
