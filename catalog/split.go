package catalog

import (
	"iter"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// division is a port's endpoints, divided by a split. It is immutable.
type division struct {
	joined  *Endpoints // before the division
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
	return s.Shares(healthy)
}

func (d *division) isEffective() bool { return slices.ContainsFunc(d.factors, isSet) }

func isSet(f split.Factor) bool { return f != split.Factor{} }

// divide sets the endpoints of a service that are served. Written are the endpoints in which the joined
// ones may differ from the old service's, by port; a port without an entry is divided anew.
// It returns the changed endpoints: joined ones, which are given, and served ones.
func divide(s, old *Service, written map[uint32][]claim, changed map[EndpointID]struct{}) map[EndpointID]struct{} {
	s.endpoints = s.joined
	if s.Split == nil && (old == nil || old.divided == nil) {
		return changed
	}
	var before map[uint32]*Endpoints
	if old != nil {
		before = old.endpoints
	}
	if s.Split == nil {
		maps.Copy(changed, compare(before, s.endpoints))
		return changed
	}
	s.endpoints, s.divided = map[uint32]*Endpoints{}, map[uint32]*division{}
	for number, joined := range s.joined {
		var was *division
		if old != nil && old.Split.Equal(s.Split) {
			was = old.divided[number]
		}
		d, some := was.after(s.Split, joined, written[number])
		s.divided[number] = d
		if d.served != nil {
			s.endpoints[number] = d.served
		}
		for _, c := range some {
			had, _ := was.served.Get(c.address, c.port)
			has, _ := d.served.Get(c.address, c.port)
			if !had.same(has.Instance) {
				changed[EndpointID{number, c.address, c.port}] = struct{}{}
			}
		}
		if some == nil && before[number] != d.served {
			before[number].differences(d.served, number, changed)
		}
	}
	for number, was := range before {
		if s.joined[number] == nil {
			was.differences(nil, number, changed)
		}
	}
	return changed
}

// after divides the joined endpoints of a port. D is the division before, if there was one
// by the same split, and written are the endpoints that may differ since; nil means all. It
// also returns the endpoints in which the served ones may differ; nil means all.
func (d *division) after(s *split.Split, joined *Endpoints, written []claim) (next *division, some []claim) {
	if d != nil && d.joined == joined {
		return d, []claim{}
	}
	next = &division{joined: joined, usable: make([]usable, len(s.Backends))}
	if d == nil || written == nil {
		for m := range endpointsOf(s, joined.each()) {
			m.count(next.usable, +1)
		}
	} else {
		copy(next.usable, d.usable)
		written = slices.CompactFunc(slices.SortedFunc(slices.Values(written), claim.compare), claim.sameEndpoint)
		for _, c := range written {
			backedAt(s, d.joined, c).count(next.usable, -1)
			backedAt(s, joined, c).count(next.usable, +1)
		}
	}
	sums := make([]uint64, len(s.Backends))
	for i, u := range next.usable {
		sums[i] = u.weight
	}
	next.factors = split.Factors(s.Weights(), sums)
	if d != nil && written != nil && d.isEffective() && slices.Equal(d.factors, next.factors) {
		next.served = next.serveSome(s, d.served, written)
		return next, written
	}
	next.served = joined
	if next.isEffective() {
		next.served = next.serveAll(s)
	}
	if d != nil && d.served.sameClaims(next.served) {
		next.served = d.served
	}
	return next, nil
}

// adopt takes over equal endpoints of another division.
func (d *division) adopt(joined, served *Endpoints) *division {
	next := *d
	next.joined, next.served = joined, served
	return &next
}

// backed is an endpoint with the backends that have it.
type backed struct {
	claim
	*Instance        // nil if there is no such endpoint
	in        uint64 // a bit for each backend
}

// endpointsOf yields each endpoint once, given the claims in order. Every record's claim to the
// endpoint decides which backends have it, and the first its attributes.
func endpointsOf(s *split.Split, claims iter.Seq2[Endpoint, claim]) iter.Seq[backed] {
	return func(yield func(backed) bool) {
		var m backed
		for endpoint, c := range claims {
			if m.Instance == nil || !c.sameEndpoint(m.claim) {
				if m.Instance != nil && !yield(m) {
					return
				}
				m = backed{claim: c, Instance: endpoint.Instance}
			}
			m.in |= s.Has(endpoint.Record.Source, endpoint.Labels)
		}
		if m.Instance != nil {
			yield(m)
		}
	}
}

// backedAt returns one endpoint.
func backedAt(s *split.Split, of *Endpoints, c claim) backed {
	for m := range endpointsOf(s, of.eachAt(c)) {
		return m
	}
	return backed{claim: c}
}

// count adds a usable endpoint to the numbers of its backends, or takes it off.
func (m backed) count(numbers []usable, by int) {
	if m.Instance == nil || m.Health != model.Healthy {
		return
	}
	for i := range numbers {
		if m.in&(1<<i) != 0 {
			numbers[i].n += by
			numbers[i].weight += uint64(by * int(max(m.Weight, 1))) //nolint:gosec // -1 wraps around, and so does the sum
		}
	}
}

// serve returns the endpoint with its weight under a division; nil if no backend with a share
// has it.
func (m backed) serve(s *split.Split, d *division) *Instance {
	product, shared := 0.0, false
	for i, b := range s.Backends {
		if m.Instance != nil && m.in&(1<<i) != 0 && b.Weight > 0 {
			shared = true
			product += d.factors[i].Times(max(m.Weight, 1))
		}
	}
	if !shared {
		return nil
	}
	one := *m.Instance
	one.Weight = split.Weight(product)
	return &one
}

func (d *division) serveAll(s *split.Split) *Endpoints {
	changes := newEdit(nil, 0)
	for m := range endpointsOf(s, d.joined.each()) {
		if one := m.serve(s, d); one != nil {
			changes.set(0, m.claim, one)
		}
	}
	return changes.finish()[0]
}

// serveSome updates some of the served endpoints.
func (d *division) serveSome(s *split.Split, served *Endpoints, written []claim) *Endpoints {
	changes := newEdit(map[uint32]*Endpoints{0: served}, 0)
	for _, c := range written {
		for _, old := range served.eachAt(c) {
			changes.set(0, old, nil)
		}
		if m := backedAt(s, d.joined, c); m.Instance != nil {
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
