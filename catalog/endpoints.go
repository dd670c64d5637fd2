package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/counts"
	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/catalog/moment"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// Endpoints are the endpoints that serve one port of a service. Several records may claim
// one endpoint, in merge order, and one of them speaks for it. Endpoints are immutable, and a nil
// pointer is an empty set.
type Endpoints struct {
	EndpointCounts

	claims   immutable.Map[claim, *Instance]
	weights  *counts.Weights
	accounts *counts.Accounts
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

// Uneven reports whether endpoints of one locality differ in their weights, healthy or not.
func (e *Endpoints) Uneven() bool { return e != nil && e.weights.Uneven() }

// Weights yields the distinct weights in each locality: see [counts.Weights.All].
func (e *Endpoints) Weights() iter.Seq2[model.Locality, uint32] {
	if e == nil {
		return (*counts.Weights)(nil).All()
	}
	return e.weights.All()
}

// Accounts yields the service accounts under which the endpoints run, each once and in order.
func (e *Endpoints) Accounts() iter.Seq[string] {
	if e == nil {
		return (*counts.Accounts)(nil).All()
	}
	return e.accounts.All()
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

// said is a claim as a set of endpoints has it: a division gives instances another weight.
type said struct {
	claim
	*Instance
}

func (s said) endpoint() Endpoint { return Endpoint{s.port, s.Instance} }

// inTurn yields the claims of each endpoint, the one that speaks for it first. That is the first in
// order. More than two registrations of its source may share an address and port, as workloads
// behind a gateway do: then the first of them that serves speaks. A list is valid until the next one.
func inTurn(claims iter.Seq2[claim, *Instance]) iter.Seq[[]said] {
	return func(yield func([]said) bool) {
		var list []said
		for c, instance := range claims {
			if len(list) > 0 && !c.sameEndpoint(list[0].claim) {
				if !yield(speakerFirst(list)) {
					return
				}
				list = list[:0]
			}
			list = append(list, said{c, instance})
		}
		if len(list) > 0 {
			yield(speakerFirst(list))
		}
	}
}

// speakerFirst puts the claim that speaks for an endpoint before the others.
func speakerFirst(list []said) []said {
	if len(list) <= 2 {
		return list
	}
	registrations, serves := 0, -1
	for i, s := range list {
		if s.rank != list[0].rank || s.Record.Source != list[0].Record.Source || s.Registered == 0 {
			break // they come in this order
		}
		registrations++
		if serves < 0 && s.Health == model.Healthy {
			serves = i
		}
	}
	if registrations > 2 && serves > 0 {
		speaker := list[serves]
		copy(list[1:], list[:serves])
		list[0] = speaker
	}
	return list
}

// All yields each endpoint once, with the attributes of the record that speaks for it. The endpoints
// are ordered by address and port.
func (e *Endpoints) All() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		for list := range e.each() {
			if !yield(list[0].endpoint()) {
				return
			}
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
		for list := range inTurn(e.claims.From(claim{address: address, rank: -1})) {
			if list[0].address != address || !yield(list[0].endpoint()) {
				return
			}
		}
	}
}

// Claims yields the claims of all records, by endpoint, the one that speaks for it first.
func (e *Endpoints) Claims() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		for list := range e.each() {
			for _, s := range list {
				if !yield(s.endpoint()) {
					return
				}
			}
		}
	}
}

// each yields the claims of each endpoint in turn.
func (e *Endpoints) each() iter.Seq[[]said] {
	if e == nil {
		return func(func([]said) bool) {}
	}
	return inTurn(e.claims.All())
}

// at returns the claims of c's endpoint in turn.
func (e *Endpoints) at(c claim) []said {
	if e == nil {
		return nil
	}
	return turnAt(e.claims, c)
}

// turnAt returns the claims of c's endpoint in turn; nil if there are none.
func turnAt(claims immutable.Map[claim, *Instance], c claim) (list []said) {
	for at, instance := range claims.From(claim{address: c.address, port: c.port, rank: -1}) {
		if !at.sameEndpoint(c) {
			break
		}
		list = append(list, said{at, instance})
	}
	return speakerFirst(list)
}

// byAddress yields the counts of the endpoints of each address.
func (e *Endpoints) byAddress() iter.Seq2[string, EndpointCounts] {
	return func(yield func(string, EndpointCounts) bool) {
		var sum EndpointCounts
		address := ""
		for endpoint := range e.All() {
			if ip.Place(endpoint.Address) != address && sum.Total > 0 {
				if !yield(address, sum) {
					return
				}
				sum = EndpointCounts{}
			}
			address = ip.Place(endpoint.Address)
			sum.count(endpoint.Instance, endpoint.Port, +1)
		}
		if sum.Total > 0 {
			yield(address, sum)
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
	before   *Endpoints
	claims   *immutable.Editor[claim, *Instance]
	counts   EndpointCounts
	weights  counts.Weighing
	accounts counts.Accounting
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
		p.claims, p.counts = b.claims.Edit(), b.EndpointCounts
		p.weights, p.accounts = b.weights.Edit(), b.accounts.Edit()
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
	p.counts.count(before, c.port, -1)
	p.counts.count(after, c.port, +1)
	p.weights.Replace(before.endpoint(), after.endpoint(), p.counted)
	p.accounts.Replace(before.endpoint(), after.endpoint())
	if p.before != nil {
		p.written = append(p.written, c)
	}
}

// counted yields the records that count, as they are in the edit.
func (p *portEdit) counted(yield func(*model.Endpoint) bool) {
	for endpoint := range (&Endpoints{claims: p.claims.View()}).All() {
		if !yield(&endpoint.Endpoint) {
			return
		}
	}
}

// endpoint returns the endpoint of an instance; nil if there is none.
func (i *Instance) endpoint() *model.Endpoint {
	if i == nil {
		return nil
	}
	return &i.Endpoint
}

// counting returns the instance that speaks for c's endpoint; nil if there is none. The first does
// unless it is a registration, which are first among the claims of their source.
func counting(claims immutable.Map[claim, *Instance], c claim) (first *Instance) {
	n := 0
	for at, instance := range claims.From(claim{address: c.address, port: c.port, rank: -1}) {
		if !at.sameEndpoint(c) {
			break
		}
		if n++; n == 1 {
			first = instance
		}
		if first.Registered == 0 {
			return first
		}
		if n > 2 {
			return turnAt(claims, c)[0].Instance
		}
	}
	return first
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
		return &Endpoints{EndpointCounts: p.counts, claims: p.claims.Map(), weights: p.weights.Finish(), accounts: p.accounts.Finish()}
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
		if list := turnAt(claims, c); list != nil {
			stamped := *list[0].Instance
			first := list[0].claim
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
