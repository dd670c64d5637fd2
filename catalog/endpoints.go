package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/counts"
	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/catalog/moment"
	"github.com/isthmus-mesh/isthmus/catalog/stale"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/internal/order"
	"github.com/isthmus-mesh/isthmus/model"
)

// Endpoints are the endpoints that serve one port of a service. Several records may claim
// one endpoint, in merge order, and one of them speaks for it. Endpoints are immutable, and a nil
// pointer is an empty set.
type Endpoints struct {
	EndpointCounts

	claims   immutable.Map[claim, *Instance]
	stale    stale.Sources
	weights  *counts.Weights
	accounts *counts.Accounts
}

// EndpointCounts counts endpoints.
type EndpointCounts = counts.Endpoints

// none are the endpoints of a nil pointer.
var none = &Endpoints{claims: immutable.New[claim, *Instance](claim.compare)}

func (e *Endpoints) orNone() *Endpoints {
	if e == nil {
		return none
	}
	return e
}

// Counts returns the counts; a nil pointer has none.
func (e *Endpoints) Counts() EndpointCounts { return e.orNone().EndpointCounts }

// Uneven reports whether endpoints of one locality differ in their weights, healthy or not.
func (e *Endpoints) Uneven() bool { return e.orNone().weights.Uneven() }

// Weights yields the distinct weights in each locality: see [counts.Weights.All].
func (e *Endpoints) Weights() iter.Seq2[model.Locality, uint32] { return e.orNone().weights.All() }

// Accounts yields the service accounts under which the endpoints run, each once and in order.
func (e *Endpoints) Accounts() iter.Seq[string] { return e.orNone().accounts.All() }

// claim is one record's claim that an address and port serve. Claims of one address and port are
// ordered by the rank of their source, then the newest registration first, then one that serves, then
// by record. There is one for each endpoint of a mesh; two claims are equal when compare returns 0.
type claim struct {
	address string // the [Instance.place]
	port    uint32
	rank    int32
	by      *Instance // nil in a key that searches the first claim of an address and port
}

func (c claim) compare(o claim) int {
	if at := cmp.Or(cmp.Compare(c.address, o.address), cmp.Compare(c.port, o.port), cmp.Compare(c.rank, o.rank)); at != 0 {
		return at // skip the rest: every look-up waits for this comparison
	}
	return cmp.Or(cmp.Compare(c.by.Record.Source, o.by.Record.Source), cmp.Compare(o.by.Registered, c.by.Registered),
		order.TrueFirst(c.by.Health == model.Healthy, o.by.Health == model.Healthy), c.by.Record.Compare(o.by.Record))
}

func (c claim) sameSocket(o claim) bool { return c.address == o.address && c.port == o.port }

// said is a claim as a set of endpoints has it: a division gives instances another weight.
type said struct {
	claim
	*Instance
	backend int  // of a split, from 1; 0 for the service itself
	nth     int  // its endpoint among the endpoints at the address and port
	stale   bool // its source is one of the [stale.Sources]
}

// said returns a claim of the endpoints.
func (e *Endpoints) said(c claim, instance *Instance) said {
	return said{claim: c, Instance: instance, stale: e.stale.Has(instance.Record.Source)}
}

// inTurn yields the claims of each endpoint, the one that speaks for it first. A list is valid until
// the next one.
func (e *Endpoints) inTurn(claims iter.Seq2[claim, *Instance]) iter.Seq[[]said] {
	return func(yield func([]said) bool) {
		var list []said
		for c, instance := range claims {
			if len(list) > 0 && !c.sameSocket(list[0].claim) {
				if !each(arrange(list), yield) {
					return
				}
				list = list[:0]
			}
			list = append(list, e.said(c, instance))
		}
		each(arrange(list), yield)
	}
}

// each yields the claims of each endpoint among arranged ones.
func each(list []said, yield func([]said) bool) bool {
	for endpoint, rest := cut(list); len(endpoint) > 0; endpoint, rest = cut(rest) {
		if !yield(endpoint) {
			return false
		}
	}
	return true
}

// arrange orders the claims of one address and port by endpoint, and puts the claim that speaks for
// each first. That is the first in order, or see [speakerFirst].
func arrange(list []said) []said {
	separate(list)
	for endpoint, rest := cut(list); len(endpoint) > 0; endpoint, rest = cut(rest) {
		speakerFirst(endpoint)
	}
	return list
}

// mostNetworks bounds the endpoints at one address and port. Claims of further networks are about the last.
const mostNetworks = 16

// separate orders the claims of one address and port by endpoint. Several networks may have one IP
// address: each that a claim names has an endpoint there. Claims without a network come first, and have
// an endpoint of their own; if only one network is named, they are about the endpoint there.
func separate(list []said) {
	if !hasSeveral(list) {
		return
	}
	numbers := map[string]int{}
	if slices.ContainsFunc(list, func(s said) bool { return s.Network == "" }) {
		numbers[""] = 0
	}
	for i, s := range list {
		if _, ok := numbers[s.Network]; !ok {
			numbers[s.Network] = min(len(numbers), mostNetworks-1)
		}
		list[i].nth = numbers[s.Network]
	}
	slices.SortStableFunc(list, func(a, b said) int { return cmp.Compare(a.nth, b.nth) })
}

// hasSeveral reports whether claims name several networks with one IP address. Of divided endpoints, the
// endpoint's network counts, even if it is none.
func hasSeveral(list []said) bool {
	network := ""
	for _, s := range list {
		if network != "" && s.Network != "" && s.Network != network || s.divided && s.Network != list[0].Network {
			return s.isIP()
		}
		network = cmp.Or(network, s.Network)
	}
	return false
}

// cut returns the claims of the first endpoint among separated ones, and the others.
func cut(list []said) (endpoint, rest []said) {
	n := slices.IndexFunc(list, func(s said) bool { return s.nth != list[0].nth })
	if n < 0 {
		return list, nil
	}
	return list[:n], list[n:]
}

// endpointOf returns the endpoint of some claims, of which the first speaks. It has their network.
func endpointOf(list []said) Endpoint {
	e := Endpoint{list[0].port, list[0].Network, speaker(list)}
	if e.Network != "" || len(list) == 1 || e.divided || !e.isIP() {
		return e
	}
	for _, s := range list {
		e.Network = cmp.Or(e.Network, s.Network)
	}
	return e
}

// speakerFirst puts the claim that speaks for an endpoint before the others. More than two registrations
// of a source may share an address and port of a service, as workloads behind a gateway do: then the first of
// them that serves speaks.
func speakerFirst(list []said) {
	if len(list) <= 2 {
		return
	}
	registrations, serves := 0, -1
	for i, s := range list {
		if s.backend != list[0].backend || s.rank != list[0].rank || s.Record.Source != list[0].Record.Source || s.Registered == 0 {
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
}

// All yields each endpoint once, with the attributes of the record that speaks for it. The endpoints
// are ordered by address and port. Of one address and port, the endpoint without a network comes first,
// then that of the network which comes first in the merge order.
func (e *Endpoints) All() iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		for list := range e.each() {
			if !yield(endpointOf(list)) {
				return
			}
		}
	}
}

// Get returns an endpoint, as [Endpoints.All] yields it. The port of the service plays no part.
func (e *Endpoints) Get(id EndpointID) (Endpoint, bool) {
	var room [2]Endpoint
	for _, at := range e.socket(room[:0], claim{address: id.Address, port: id.Port}) {
		if at.Network == id.Network {
			return at, true
		}
	}
	return Endpoint{}, false
}

// AtPort returns the endpoints at an address and port, as [Endpoints.All] yields them.
func (e *Endpoints) AtPort(address string, port uint32) []Endpoint {
	return e.socket(nil, claim{address: ip.Place(address), port: port})
}

// At yields the endpoints of an address, as [Endpoints.All] yields them. Its cost is the
// endpoints at that address.
func (e *Endpoints) At(address string) iter.Seq[Endpoint] {
	return func(yield func(Endpoint) bool) {
		address := ip.Place(address)
		for list := range e.inTurn(e.orNone().claims.From(claim{address: address, rank: -1})) {
			if list[0].address != address || !yield(endpointOf(list)) {
				return
			}
		}
	}
}

// Claims yields the claims of all records, by endpoint, and whether a claim speaks for the endpoint. That
// one comes first. All are as their records have them, but for the endpoint's network.
func (e *Endpoints) Claims() iter.Seq2[Endpoint, bool] {
	return func(yield func(Endpoint, bool) bool) {
		for list := range e.each() {
			if !yield(Endpoint{list[0].port, endpointOf(list).Network, list[0].Instance}, true) {
				return
			}
			for _, s := range list[1:] {
				if !yield(Endpoint{s.port, s.Network, s.Instance}, false) {
					return
				}
			}
		}
	}
}

// each yields the claims of each endpoint in turn.
func (e *Endpoints) each() iter.Seq[[]said] { return e.inTurn(e.all()) }

// all yields all claims, in order.
func (e *Endpoints) all() iter.Seq2[claim, *Instance] { return e.orNone().claims.All() }

// at returns the arranged claims of c's address and port.
func (e *Endpoints) at(c claim) []said { return arrange(e.orNone().claimsAt(nil, c)) }

// claimsAt adds the claims of c's address and port to a list.
func (e *Endpoints) claimsAt(list []said, c claim) []said {
	for at, instance := range e.claims.From(claim{address: c.address, port: c.port, rank: -1}) {
		if !at.sameSocket(c) {
			break
		}
		list = append(list, e.said(at, instance))
	}
	return list
}

// socket adds the endpoints at c's address and port to a list.
func (e *Endpoints) socket(to []Endpoint, c claim) []Endpoint {
	var room [2]said
	list := arrange(e.orNone().claimsAt(room[:0], c))
	for endpoint, rest := cut(list); len(endpoint) > 0; endpoint, rest = cut(rest) {
		to = append(to, endpointOf(endpoint))
	}
	return to
}

// byAddress yields the counts of the endpoints of each address.
func (e *Endpoints) byAddress() iter.Seq2[string, EndpointCounts] {
	return func(yield func(string, EndpointCounts) bool) {
		var sum EndpointCounts
		address := ""
		for endpoint := range e.All() {
			if endpoint.place() != address && sum.Total > 0 {
				if !yield(address, sum) {
					return
				}
				sum = EndpointCounts{}
			}
			address = endpoint.place()
			sum.Count(&endpoint.Endpoint, endpoint.Port, endpoint.Network, +1)
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
	stale  stale.Sources
	ports  map[uint32]*portEdit
}

type portEdit struct {
	before *Endpoints
	stale  stale.Sources
	claims *immutable.Editor[claim, *Instance]
	// written are the claims that may differ from before; once finished, one for each address and port. They
	// are not kept if there were no endpoints before.
	written []claim
}

func newEdit(before map[uint32]*Endpoints, stale stale.Sources, at moment.Moment) *edit {
	return &edit{at, before, stale, map[uint32]*portEdit{}}
}

func (e *edit) port(number uint32) *portEdit {
	if p, ok := e.ports[number]; ok {
		return p
	}
	before := e.before[number]
	p := &portEdit{before: before, stale: e.stale, claims: before.orNone().claims.Edit()}
	e.ports[number] = p
	return p
}

// set adds a claim, or with a nil instance removes it.
func (e *edit) set(servicePort uint32, c claim, instance *Instance) {
	p := e.port(servicePort)
	if instance != nil {
		p.claims.Set(c, instance)
	} else {
		p.claims.Delete(c)
	}
	if p.before != nil {
		p.written = append(p.written, c)
	}
}

// tally counts endpoints in the making.
type tally struct {
	EndpointCounts
	weights  counts.Weighing
	accounts counts.Accounting
	anew     bool // weights have to be counted anew
}

// counting counts endpoints that come or go, by their claims.
func (t *tally) counting(by int) func([]said) bool {
	return func(list []said) bool {
		e := endpointOf(list)
		t.Count(&e.Endpoint, e.Port, e.Network, by)
		if list[0].nth > 0 {
			t.Shared += by
		}
		t.accounts.Count(&e.Endpoint, by)
		t.anew = !t.weights.Count(&e.Endpoint, by) || t.anew
		return true
	}
}

// counted returns the endpoints with their counts. It reads the written ones, or all if there were
// none before.
func (p *portEdit) counted() *Endpoints {
	now, t := &Endpoints{claims: p.claims.Map(), stale: p.stale}, tally{}
	if b := p.before; b != nil {
		t.EndpointCounts, t.weights, t.accounts = b.EndpointCounts, b.weights.Edit(), b.accounts.Edit()
		come, gone := t.counting(+1), t.counting(-1)
		for _, c := range p.written {
			each(now.at(c), come)
			each(b.at(c), gone)
		}
	} else {
		now.each()(t.counting(+1))
	}
	if t.anew {
		t.weights.CountAll(func(yield func(*model.Endpoint) bool) {
			now.All()(func(e Endpoint) bool { return yield(&e.Endpoint) })
		})
	}
	now.EndpointCounts, now.weights, now.accounts = t.EndpointCounts, t.weights.Finish(), t.accounts.Finish()
	return now
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

// written returns a claim for each address and port at which endpoints may differ from before, by port. A port without
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
		return was.Same(is)
	}
	switch {
	case p.before != nil && !slices.ContainsFunc(p.written, func(c claim) bool { return !same(c) }):
		return p.before
	case claims.Len() == 0:
		return nil
	default:
		slices.SortFunc(p.written, compareSockets)
		p.written = slices.CompactFunc(p.written, claim.sameSocket)
		p.stampLosses(at)
		return p.counted()
	}
}

// stampLosses stamps the endpoints that lost a claim and keep others: no record of them has
// the time of that change. The stamp is lost when the service's endpoints are collected anew
// on another port or in another order.
func (p *portEdit) stampLosses(at moment.Moment) {
	if at == 0 { // unknown
		return
	}
	for _, c := range p.written {
		var lost []string // the networks of claims
		for _, was := range p.before.claimsAt(nil, c) {
			if _, is := p.claims.View().Get(was.claim); !is {
				lost = append(lost, was.Network)
			}
		}
		if lost == nil {
			continue
		}
		all := arrange((&Endpoints{claims: p.claims.View()}).claimsAt(nil, c))
		for list, rest := cut(all); len(list) > 0; list, rest = cut(rest) {
			of := endpointOf(list).Network
			if !slices.Contains(lost, of) && (hasSeveral(all) || of != "" && !slices.Contains(lost, "")) {
				continue // it did not have the claim
			}
			stamped := *list[0].Instance
			first := list[0].claim
			first.by, stamped.changed = &stamped, at
			p.claims.Set(first, &stamped)
		}
	}
}

// differences adds to changed the endpoints with another speaker. It compares
// only the written endpoints.
func (p *portEdit) differences(now *Endpoints, servicePort uint32, changed map[EndpointID]struct{}) {
	if p.before == nil || now == nil {
		p.before.differences(now, servicePort, changed)
		return
	}
	for _, c := range p.written {
		p.before.differencesAt(now, c, servicePort, changed)
	}
}

// differencesAt adds to changed the endpoints at c's address and port with another speaker.
func (e *Endpoints) differencesAt(o *Endpoints, c claim, servicePort uint32, changed map[EndpointID]struct{}) {
	var room, other [2]Endpoint
	was, is := e.socket(room[:0], c), o.socket(other[:0], c)
	for _, one := range append(was, is...) {
		if !slices.ContainsFunc(was, one.same) || !slices.ContainsFunc(is, one.same) {
			changed[one.ID(servicePort)] = struct{}{}
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
		if oc, other, _ := next(); c.compare(oc) != 0 || !instance.Same(other) || instance.divided != other.divided {
			return false
		}
	}
	return e.sameHealth(o.stale)
}

// differences adds to changed the endpoints with another speaker.
func (e *Endpoints) differences(o *Endpoints, servicePort uint32, changed map[EndpointID]struct{}) {
	var seen map[EndpointID]Endpoint
	if e != nil {
		seen = make(map[EndpointID]Endpoint, e.Total)
	}
	for endpoint := range e.All() {
		seen[endpoint.ID(servicePort)] = endpoint
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
