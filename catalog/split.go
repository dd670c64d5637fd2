package catalog

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/catalog/stale"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
)

// division is a port's endpoints, divided by a split. It is immutable.
type division struct {
	pool               // before the division
	served  *Endpoints // without the endpoints that no backend with a share has
	usable  []usable   // by backend
	factors []split.Factor
}

// usable counts healthy endpoints.
type usable struct {
	n      int
	weight uint64 // their sum
}

// shares returns the shares of the backends, in the order of the split.
func (d *division) shares(s *split.Split) []split.Share {
	if d == nil {
		return nil
	}
	healthy := make([]int, len(d.usable))
	for i, u := range d.usable {
		healthy[i] = u.n
	}
	shares := s.Shares(healthy)
	for i, o := range d.others {
		shares[i].LeftOut = o.leftOut
	}
	return shares
}

func (d *division) isEffective() bool { return slices.ContainsFunc(d.factors, isSet) }

func isSet(f split.Factor) bool { return f != split.Factor{} }

// Weighed yields the endpoints of a port that a split divides, and the part of the served
// weight that each backend accounts for. The parts are valid until the next endpoint. There is
// none if the split has no effect.
func (s *Service) Weighed(port uint32) iter.Seq2[Endpoint, []float64] {
	return func(yield func(Endpoint, []float64) bool) {
		d := s.divided[port]
		if d == nil || !d.isEffective() {
			return
		}
		parts := make([]float64, len(d.factors))
		for m := range d.each(s.Split) {
			for i, f := range d.factors {
				parts[i] = f.Times(m.weights[i])
			}
			if !yield(m.Endpoint, parts) {
				return
			}
		}
	}
}

// dividing divides the services of a step.
type dividing struct {
	before  immutable.Map[ServiceKey, *Service] // the step
	touched map[ServiceKey]*touched
	stale   stale.Sources
}

// touchDivided touches the services with a split that has a touched service as a backend.
func (d dividing) touchDivided(backing map[ServiceKey]map[ServiceKey]struct{}, revision uint64, at time.Time) {
	if len(backing) == 0 {
		return
	}
	for _, key := range slices.Collect(maps.Keys(d.touched)) {
		for divided := range backing[key] {
			old, ok := d.before.Get(divided)
			if !ok || d.touched[divided] != nil {
				continue
			}
			now := &Service{ServiceDefinition: old.ServiceDefinition, Revision: revision, Changed: at, joined: old.joined}
			d.touched[divided] = &touched{old: old, now: now, changed: map[EndpointID]struct{}{}}
		}
	}
}

// divide sets the endpoints of a touched service that are served, and adds the served ones
// to its changed endpoints.
func (d dividing) divide(t *touched) {
	now, old := t.now, t.old
	now.endpoints = now.joined
	if now.Split == nil && (old == nil || old.divided == nil) {
		return
	}
	var before map[uint32]*Endpoints
	if old != nil {
		before = old.endpoints
	}
	if now.Split == nil {
		maps.Copy(t.changed, compare(before, now.endpoints))
		return
	}
	now.endpoints, now.divided = map[uint32]*Endpoints{}, map[uint32]*division{}
	for _, port := range now.Ports {
		d.dividePort(t, port, before[port.Number])
	}
	for number, was := range before {
		if now.divided[number] == nil {
			was.differences(nil, number, t.changed)
		}
	}
}

// dividePort divides the endpoints of a port, if there are any.
func (d dividing) dividePort(t *touched, port model.Port, before *Endpoints) {
	of, number := d.poolOf(t.now, port), port.Number
	if of.isEmpty() {
		return
	}
	var was *division
	if t.old != nil && t.old.Split.Equal(t.now.Split) {
		was = t.old.divided[number]
	}
	next, some := was.after(t.now.Split, of, func() []claim { return d.differing(t, port, was.pool, of) })
	t.now.divided[number] = next
	if next.served != nil {
		t.now.endpoints[number] = next.served
	}
	for _, c := range some {
		was.served.differencesAt(next.served, c, number, t.changed)
	}
	if some == nil && before != next.served {
		before.differences(next.served, number, t.changed)
	}
}

// after divides the endpoints of a port. D is the division before, if there was one by the
// same split, and differing returns the claims at whose address and port endpoints may differ since; nil
// means all. It also returns the claims at which the served endpoints may differ; nil means all.
func (d *division) after(s *split.Split, of pool, differing func() []claim) (next *division, some []claim) {
	if d != nil && d.equal(of, s) {
		return d, []claim{}
	}
	next = &division{pool: of, usable: make([]usable, len(s.Backends))}
	var written []claim
	if d != nil {
		written = differing()
	}
	if written == nil {
		for m := range of.each(s) {
			m.count(next.usable, +1)
		}
	} else {
		copy(next.usable, d.usable)
		written = slices.CompactFunc(slices.SortedFunc(slices.Values(written), compareSockets), claim.sameSocket)
		for _, c := range written {
			for _, m := range d.at(s, c) {
				m.count(next.usable, -1)
			}
			for _, m := range of.at(s, c) {
				m.count(next.usable, +1)
			}
		}
	}
	sums := make([]uint64, len(s.Backends))
	for i, u := range next.usable {
		sums[i] = u.weight
	}
	next.factors = split.Factors(s.Weights(), sums)
	if written != nil && d.isEffective() && slices.Equal(d.factors, next.factors) {
		next.served = next.serveSome(s, d.served, written)
		return next, written
	}
	next.served = of.own
	if next.isEffective() {
		next.served = next.serveAll(s)
	}
	if d != nil && d.served.sameClaims(next.served) {
		next.served = d.served
	}
	return next, nil
}

// adoptDivisions takes over the divisions of was that are equal, if there is one, once all
// services have taken over equal endpoints. Joined returns the joined endpoints of a service.
func (s *Service) adoptDivisions(was *Service, joined func(ServiceKey) map[uint32]*Endpoints) {
	for number, d := range s.divided {
		next := *d
		next.own, next.served, next.others = s.joined[number], s.endpoints[number], slices.Clone(d.others)
		for i, o := range next.others {
			if o.endpoints != nil {
				next.others[i].endpoints = joined(ServiceKey(s.Split.Backends[i].Service))[o.port]
			}
		}
		s.divided[number] = &next
		if was == nil || was.divided[number] == nil || !was.Split.Equal(s.Split) {
			continue
		}
		if old := was.divided[number]; old.equal(next.pool, s.Split) && old.served == next.served {
			s.divided[number] = old
		}
	}
}

// count adds a usable endpoint to the numbers of its backends, or takes it off.
func (m backed) count(numbers []usable, by int) {
	if m.Health != model.Healthy {
		return
	}
	for i := range numbers {
		if m.weights[i] > 0 {
			numbers[i].n += by
			numbers[i].weight += uint64(by * int(m.weights[i])) //nolint:gosec // -1 wraps around, and so does the sum
		}
	}
}

// serve returns the endpoint with its weight under a division; nil if no backend with a share
// has it.
func (m backed) serve(s *split.Split, d *division) *Instance {
	product, shared := 0.0, false
	for i, b := range s.Backends {
		if m.weights[i] > 0 && b.Weight > 0 {
			shared = true
			product += d.factors[i].Times(m.weights[i])
		}
	}
	if !shared {
		return nil
	}
	one := *m.Instance
	one.Weight, one.Network, one.divided = split.Weight(product), m.Network, true
	return &one
}

func (d *division) serveAll(s *split.Split) *Endpoints {
	changes := newEdit(nil, nil, 0)
	for m := range d.each(s) {
		if one := m.serve(s, d); one != nil {
			changes.set(0, m.claim, one)
		}
	}
	return changes.finish()[0]
}

// serveSome updates some of the served endpoints.
func (d *division) serveSome(s *split.Split, served *Endpoints, written []claim) *Endpoints {
	changes := newEdit(map[uint32]*Endpoints{0: served}, nil, 0)
	for _, c := range written {
		for _, old := range served.at(c) {
			changes.set(0, old.claim, nil)
		}
		for _, m := range d.at(s, c) {
			if one := m.serve(s, d); one != nil {
				changes.set(0, m.claim, one)
			}
		}
	}
	return changes.finish()[0]
}

// resplit returns the services that two sets of splits divide otherwise.
func resplit(a, b map[ServiceKey]*split.Split) []ServiceKey {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	return slices.DeleteFunc(keys, func(key ServiceKey) bool { return a[key].Equal(b[key]) })
}
