package envoy

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// collection is the endpoints of a service port in one locality, each of which Envoys
// take as a resource of its own. It is one revision and immutable.
type collection struct {
	servicePort
	epoch, number uint32
	locality      model.Locality
	endpoints     *catalog.Endpoints // of the service port
	members       int
	weight        uint64
	// journal is where an endpoint came, went or changed since the collection has its
	// name. Revisions share it: a later one has more.
	journal []netip.AddrPort
	lost    bool // the last step took a member away, or changed one
}

func (c *collection) count(e catalog.Endpoint, by int) {
	c.members += by
	if by > 0 {
		c.weight += weightOf(e)
	} else {
		c.weight -= weightOf(e)
	}
}

// revision is the version of the collection as its journal was at some length.
func (c *collection) revision(length int) (v push.Version) {
	binary.BigEndian.PutUint32(v[:], c.epoch)
	binary.BigEndian.PutUint32(v[4:], c.number)
	binary.BigEndian.PutUint64(v[8:], uint64(length)+1) //nolint:gosec // not below zero
	return v
}

// roster is what a collection's name stands for, for clients that hold it as it was
// when its journal had some length.
type roster struct {
	*collection
	from int // -1 if nobody knows what they hold
}

var _ push.Incremental = roster{}

type rosterSlot struct {
	number uint32
	all    bool
}

// Slot implements [push.Subject].
func (m roster) Slot() any { return rosterSlot{m.number, m.from < 0} }

// Revision implements [push.Incremental].
func (m roster) Revision() push.Version { return m.revision(len(m.journal)) }

// Since implements [push.Incremental].
func (m roster) Since(held push.Version) push.Subject {
	m.from = -1
	if length := binary.BigEndian.Uint64(held[8:]); length > 0 && length <= uint64(len(m.journal))+1 && m.revision(int(length-1)) == held { //nolint:gosec // it is no more than there are
		m.from = int(length - 1) //nolint:gosec // likewise
	}
	return m
}

// Encode implements [push.Subject]. A client of which nobody knows what it holds is
// sent all members, and that everything else is gone that was ever among them: Envoy
// keeps what it had through a new connection, and does not say so.
func (m roster) Encode() push.Encoded {
	room := 0
	if m.from < 0 {
		room = m.members
	}
	w := wire.NewMembers(m.prefix(), room)
	if m.from < 0 {
		for e := range m.endpoints.All() {
			if at, ok := m.member(e); ok {
				w.Add(at, e.Weight, reach.FurtherAddresses(e))
			}
		}
	}
	seen := make(map[netip.AddrPort]struct{}, len(m.journal)-max(m.from, 0))
	for _, at := range m.journal[max(m.from, 0):] {
		if _, twice := seen[at]; twice {
			continue
		}
		seen[at] = struct{}{}
		e, there := m.endpoints.Get(at.Addr().String(), uint32(at.Port()))
		switch _, is := m.member(e); {
		case !there || !is:
			w.Remove(at)
		case m.from >= 0:
			w.Add(at, e.Weight, reach.FurtherAddresses(e))
		}
	}
	return push.Encoded{Name: m.glob(), Version: m.Revision(), Body: w.Body(m.glob(), m.from < 0), Framed: true}
}

// member returns the address of an endpoint that is in the collection.
func (c *collection) member(e catalog.Endpoint) (netip.AddrPort, bool) {
	if e.Instance == nil || e.Health != model.Healthy || e.Locality != c.locality {
		return netip.AddrPort{}, false
	}
	return memberAddress(e)
}

// spreadAssignment is a load assignment that names collections.
type spreadAssignment struct {
	slot
	partition *partition
}

var (
	_ push.Unrepeatable = spreadAssignment{}
	_ push.Referrer     = spreadAssignment{}
)

type spreadSlot struct{ slot }

// Slot implements [push.Subject].
func (a spreadAssignment) Slot() any { return spreadSlot{a.slot} }

// Refers implements [push.Referrer].
func (a spreadAssignment) Refers(to string) iter.Seq[string] {
	if to != wire.MemberURL {
		return nothing
	}
	return func(yield func(string) bool) {
		for _, g := range a.partition.groups {
			if !yield(g.Collection) {
				return
			}
		}
	}
}

// Encode implements [push.Subject].
func (a spreadAssignment) Encode() push.Encoded { return a.encode(0) }

// times counts the assignments that were sent.
var times atomic.Int64

// EncodeOnce implements [push.Unrepeatable]. Envoy keeps its subscription to a
// collection through another assignment that names it in the same way, and then reads
// the assignment before, which it has freed. So no two name one in the same way: the
// time limit of each, which never ends, is another.
func (a spreadAssignment) EncodeOnce() push.Encoded {
	e := a.encode(time.Duration(times.Add(1)))
	e.Version = a.Encode().Version
	return e
}

// never is a time limit that does not end. To wait is right: the collections that an
// assignment names are there, or another assignment is on its way.
const never = 365 * 24 * time.Hour

func (a spreadAssignment) encode(time time.Duration) push.Encoded {
	m := &wire.Collections{Name: a.clusterName(), Groups: a.partition.groups}
	return encode(m.Name, wire.EndpointURL, m.Message(never+time))
}
