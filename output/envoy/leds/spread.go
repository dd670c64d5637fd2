package leds

import (
	"math"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// Spread is the collections of a service port, one for each locality. It is immutable.
type Spread struct {
	endpoints *catalog.Endpoints
	unfit     int    // endpoints that no member can be made of
	weight    uint64 // of all members
	// Partition is the load assignment; nil if it has to contain the endpoints itself. It stays
	// the same pointer while the assignment does.
	Partition   *Partition
	collections []*Collection // in the order of the Partition
}

// Partition is a load assignment that names collections.
type Partition struct{ Groups []wire.CollectionGroup }

func (s *Spread) partitionOf() *Partition {
	if s == nil {
		return nil
	}
	return s.Partition
}

func (s *Spread) all() []*Collection {
	if s == nil {
		return nil
	}
	return s.collections
}

// MemberAddress returns the address of an endpoint, if it can be a member. Envoy crashes on
// members without an IP address and a port. An address in two forms would be two members.
func MemberAddress(e catalog.Endpoint) (at netip.AddrPort, ok bool) {
	address, left := reach.IPAddress(e)
	own, err := netip.ParseAddr(address)
	if left != "" || err != nil {
		return at, false
	}
	fits := address == e.Address && lb.PlainText(e.Locality) == e.Locality
	return netip.AddrPortFrom(own, uint16(e.Port)), fits
}

// build puts the endpoints of a service port into new collections.
func (e *edit) build(at ServicePort, endpoints *catalog.Endpoints) *Spread {
	s := &Spread{endpoints: endpoints}
	byLocality := map[model.Locality]*Collection{}
	for endpoint := range endpoints.All() {
		_, fits := MemberAddress(endpoint)
		if !fits {
			s.unfit++
		}
		if endpoint.Health != model.Healthy {
			continue
		}
		c := byLocality[endpoint.Locality]
		if c == nil {
			c = &Collection{ServicePort: at, Epoch: e.Epoch, Locality: endpoint.Locality, Endpoints: endpoints}
			byLocality[endpoint.Locality] = c
			s.collections = append(s.collections, c)
		}
		c.count(endpoint, +1)
		s.weight += weightOf(endpoint)
	}
	if !s.fits() {
		s.collections = nil
		return s
	}
	slices.SortFunc(s.collections, func(a, b *Collection) int { return lb.CompareLocalities(&a.Locality, &b.Locality) })
	s.Partition = &Partition{}
	for _, c := range s.collections {
		e.Maker.named++
		c.Number = e.Maker.named
		s.Partition.Groups = append(s.Partition.Groups, wire.CollectionGroup{Locality: c.Locality, Weight: uint32(c.weight), Collection: c.Glob()}) //nolint:gosec // all of them fit
	}
	return s
}

// fits reports whether the assignment may name collections. Where weights have to be
// scaled down, each depends on all others.
func (s *Spread) fits() bool { return s.unfit == 0 && s.weight <= math.MaxUint32 }

func weightOf(e catalog.Endpoint) uint64 { return uint64(max(e.Weight, 1)) }

// next returns the collections after a change of endpoints, without a partition if new
// collections are needed. It reads the changed endpoints only.
func (s *Spread) next(port uint32, now *catalog.Endpoints, changed map[catalog.EndpointID]struct{}, mutual *policy.MutualPorts, limits Limits) *Spread {
	n := &spreadEdit{Spread: &Spread{endpoints: now, unfit: s.unfit, weight: s.weight, Partition: s.Partition}, before: s, mutual: mutual}
	n.collections = slices.Clone(s.collections)
	for id := range changed {
		if id.ServicePort != port {
			continue
		}
		was, had := s.endpoints.Get(id)
		is, has := now.Get(id)
		n.replace(was, had, is, has)
	}
	for i, c := range n.collections {
		if c != s.collections[i] {
			c.Endpoints = now
		}
	}
	if !n.fits() || n.misfit || n.outgrown(limits) {
		n.Partition, n.collections = nil, nil
	}
	return n.Spread
}

type spreadEdit struct {
	*Spread
	before *Spread
	mutual *policy.MutualPorts
	misfit bool // a locality is in no Collection
}

// replace counts a state of an endpoint in place of the state before.
func (n *spreadEdit) replace(was catalog.Endpoint, had bool, is catalog.Endpoint, has bool) {
	old, oldFits := address(was, had)
	at, fits := address(is, has)
	if had && !oldFits {
		n.unfit--
	}
	if has && !fits {
		n.unfit++
	}
	had, has = had && was.Health == model.Healthy, has && is.Health == model.Healthy
	if had && has && was.Locality == is.Locality && was.Weight == is.Weight && was.Also.Equal(is.Also) && n.mutual.Reaches(was.Labels, was.Port) == n.mutual.Reaches(is.Labels, is.Port) {
		return
	}
	if had {
		n.weight -= weightOf(was)
		n.write(was, old, -1)
	}
	if has {
		n.weight += weightOf(is)
		n.write(is, at, +1)
	}
}

func address(e catalog.Endpoint, there bool) (netip.AddrPort, bool) {
	if !there {
		return netip.AddrPort{}, false
	}
	return MemberAddress(e)
}

// write enters a change into the collection of its locality.
func (n *spreadEdit) write(e catalog.Endpoint, at netip.AddrPort, by int) {
	if n.Partition == nil {
		return
	}
	i, found := slices.BinarySearchFunc(n.collections, &e.Locality, func(c *Collection, l *model.Locality) int { return lb.CompareLocalities(&c.Locality, l) })
	if !found {
		n.misfit = true
		return
	}
	c := n.collections[i]
	if c == n.before.collections[i] {
		own := *c
		c, own.lost = &own, false
		n.collections[i] = c
	}
	c.count(e, by)
	c.lost = c.lost || by < 0
	if last := len(c.Journal); last == len(n.before.collections[i].Journal) || c.Journal[last-1] != at {
		c.Journal = append(c.Journal, at)
	}
}

// outgrown reports whether new collections are needed: as many endpoints changed as there are,
// or the weights of localities differ from the assignment. New collections are expensive, since
// every client takes all members again.
func (s *Spread) outgrown(limits Limits) bool {
	for i, c := range s.collections {
		assigned := uint64(s.Partition.Groups[i].Weight)
		slack := assigned/8 + s.weight/32 + limits.Weight
		if c.weight > assigned+slack || c.weight+slack < assigned || len(c.Journal) > max(limits.Changes, c.Members) {
			return true
		}
	}
	return false
}
