package envoy

import (
	"math"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// spread is the endpoints of a service port in collections, one for each locality. It
// is immutable.
type spread struct {
	endpoints *catalog.Endpoints
	unfit     int    // endpoints that no member can be made of
	weight    uint64 // of all members
	// partition is what the load assignment says; nil if the endpoints have to go in the
	// assignment itself. It stays the same pointer while the assignment does.
	partition   *partition
	collections []*collection // in the order of the partition
}

// partition is a load assignment that names collections.
type partition struct{ groups []wire.CollectionGroup }

func (s *spread) partitionOf() *partition {
	if s == nil {
		return nil
	}
	return s.partition
}

func (s *spread) all() []*collection {
	if s == nil {
		return nil
	}
	return s.collections
}

// memberAddress returns where an endpoint is, if a member can be made of it. Envoy dies
// of members that are anything but an IP address and a port, so there is no other type
// to make one of. An address in two forms would be two members.
func memberAddress(e catalog.Endpoint) (at netip.AddrPort, ok bool) {
	ip, err := netip.ParseAddr(e.Address)
	if err != nil || ip.Zone() != "" || ip.Is4In6() || e.Port == 0 || e.Port > names.HighestPort {
		return at, false
	}
	fits := reach.Canonical(ip, e.Address) == e.Address && lb.PlainText(e.Locality) == e.Locality
	return netip.AddrPortFrom(ip, uint16(e.Port)), fits
}

// build lays a service port's endpoints out anew, in collections that no client knows.
func (e *spreadsEdit) build(at servicePort, endpoints *catalog.Endpoints) *spread {
	s := &spread{endpoints: endpoints}
	tallies := map[model.Locality]*collection{}
	for endpoint := range endpoints.All() {
		_, fits := memberAddress(endpoint)
		if !fits {
			s.unfit++
		}
		if endpoint.Health != model.Healthy {
			continue
		}
		c := tallies[endpoint.Locality]
		if c == nil {
			c = &collection{servicePort: at, epoch: e.epoch, locality: endpoint.Locality, endpoints: endpoints}
			tallies[endpoint.Locality] = c
			s.collections = append(s.collections, c)
		}
		c.count(endpoint, +1)
		s.weight += weightOf(endpoint)
	}
	if !s.fits() {
		s.collections = nil
		return s
	}
	slices.SortFunc(s.collections, func(a, b *collection) int { return lb.CompareLocalities(&a.locality, &b.locality) })
	s.partition = &partition{}
	for _, c := range s.collections {
		e.steps.named++
		c.number = e.steps.named
		s.partition.groups = append(s.partition.groups, wire.CollectionGroup{Locality: c.locality, Weight: uint32(c.weight), Collection: c.glob()}) //nolint:gosec // all of them fit
	}
	return s
}

// fits reports whether the assignment may name collections. Where weights have to be
// scaled down, each depends on all others.
func (s *spread) fits() bool { return s.unfit == 0 && s.weight <= math.MaxUint32 }

func weightOf(e catalog.Endpoint) uint64 { return uint64(max(e.Weight, 1)) }

// next is the spread after endpoints have changed. It has no partition if it must be laid
// out anew. It looks at what changed and at nothing else.
func (s *spread) next(port uint32, now *catalog.Endpoints, changed map[catalog.EndpointID]struct{}, in bears) *spread {
	n := &spreadEdit{spread: &spread{endpoints: now, unfit: s.unfit, weight: s.weight, partition: s.partition}, before: s}
	n.collections = slices.Clone(s.collections)
	for id := range changed {
		if id.ServicePort != port {
			continue
		}
		was, had := s.endpoints.Get(id.Address, id.Port)
		is, has := now.Get(id.Address, id.Port)
		n.replace(was, had, is, has)
	}
	for i, c := range n.collections {
		if c != s.collections[i] {
			c.endpoints = now
		}
	}
	if !n.fits() || n.misfit || n.outgrown(in) {
		n.partition, n.collections = nil, nil
	}
	return n.spread
}

type spreadEdit struct {
	*spread
	before *spread
	misfit bool // a locality is in no collection
}

// replace has one state of an endpoint count instead of another.
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
	if had && has && was.Locality == is.Locality && was.Weight == is.Weight && was.Also.Equal(is.Also) {
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
	return memberAddress(e)
}

// write enters a change into the collection that it is of.
func (n *spreadEdit) write(e catalog.Endpoint, at netip.AddrPort, by int) {
	if n.partition == nil {
		return
	}
	i, found := slices.BinarySearchFunc(n.collections, &e.Locality, func(c *collection, l *model.Locality) int { return lb.CompareLocalities(&c.locality, l) })
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
	if last := len(c.journal); last == len(n.before.collections[i].journal) || c.journal[last-1] != at {
		c.journal = append(c.journal, at)
	}
}

// outgrown reports whether the spread is to be laid out anew: as many endpoints changed
// as there are, or localities weigh something else than the assignment says. Every
// client then takes all members again, so neither may happen for a few changes.
func (s *spread) outgrown(in bears) bool {
	for i, c := range s.collections {
		said := uint64(s.partition.groups[i].Weight)
		slack := said/8 + s.weight/32 + in.weight
		if c.weight > said+slack || c.weight+slack < said || len(c.journal) > max(in.changes, c.members) {
			return true
		}
	}
	return false
}
