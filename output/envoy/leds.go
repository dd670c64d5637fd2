package envoy

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/leds"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// ledsRows are the types of assignments and of collections.
var ledsRows = leds.Rows{Assignments: EndpointType, Collections: MemberType}

// stepFunc makes a step of one output, as [Step] does.
type stepFunc = func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) world.Update

// withCollections adds the collections of large service ports to the steps of a function.
func withCollections(without stepFunc, maker *leds.Maker) stepFunc {
	return func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) world.Update {
		set, changed := maker.Step(now, c)
		u := without(now, c, complete, root)
		if world, ok := u.World.(*World); ok {
			with := *world
			with.spreads = set
			u.World = &with
		}
		u.Changed = append(u.Changed, changed...)
		return u
	}
}

// differUnder returns a function that reports whether clients differ in the endpoints of a
// service port, under some settings. The members of a collection have no priorities, and edges
// avoid none of them.
func differUnder(p *policy.Prepared) func(s *catalog.Service, port uint32) bool {
	return func(s *catalog.Service, port uint32) bool {
		counts := s.Endpoints(port).Counts()
		return lb.OrderOf(s.Definition, port, p.Of(s.Key.Host)) != lb.Alike || len(p.Edge) > 0 && counts.Local > 0 || p.Networks != nil && counts.Networked > 0 || counts.Shared > 0
	}
}

// memberNames yields the collections of the services in a view.
func memberNames(w *state, v View) iter.Seq[string] {
	if !v.members {
		return nothing
	}
	return func(yield func(string) bool) {
		for name := range w.spreads.Globs() {
			if _, ok := findMembers(w, v, name); ok && !yield(name) {
				return
			}
		}
	}
}

// findMembers finds a collection, if its service is in the view.
func findMembers(w *state, v View, name string) (world.Subject, bool) {
	if !v.members {
		return nil, false
	}
	c := w.spreads.Collection(name)
	if c == nil {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), c.Host)
	if !ok || s.Key != c.ServiceKey {
		return nil, false
	}
	return roster{c, -1, w.settings.Mesh.In(c.Namespace)}, true
}

// roster is the resource of a collection for clients that hold an earlier revision of it.
type roster struct {
	*leds.Collection
	from   int                 // the length of the journal of that revision; -1 if it is unknown
	mutual *policy.MutualPorts // of the service's namespace
}

var _ world.Incremental = roster{}

type rosterSlot struct {
	number uint32
	all    bool
}

// Slot implements [world.Subject].
func (m roster) Slot() any { return rosterSlot{m.Number, m.from < 0} }

// Revision implements [world.Incremental].
func (m roster) Revision() world.Version { return m.RevisionAt(len(m.Journal)) }

// Since implements [world.Incremental].
func (m roster) Since(held world.Version) world.Subject {
	m.from = -1
	if length := binary.BigEndian.Uint64(held[8:]); length > 0 && length <= uint64(len(m.Journal))+1 && m.RevisionAt(int(length-1)) == held { //nolint:gosec // it is no more than there are
		m.from = int(length - 1) //nolint:gosec // likewise
	}
	return m
}

// Encode implements [world.Subject]. If the client's revision is unknown, it is sent all members
// and the removal of every former member. An Envoy that reconnects keeps its members, and does
// not report them.
func (m roster) Encode() world.Encoded {
	room := 0
	if m.from < 0 {
		room = m.Members
	}
	w := wire.NewMembers(m.Prefix(), room)
	if m.from < 0 {
		for e := range m.Endpoints.All() {
			if at, ok := m.Member(e); ok {
				m.add(w, at, e)
			}
		}
	}
	seen := make(map[netip.AddrPort]struct{}, len(m.Journal)-max(m.from, 0))
	for _, at := range m.Journal[max(m.from, 0):] {
		if _, twice := seen[at]; twice {
			continue
		}
		seen[at] = struct{}{}
		here := m.Endpoints.AtPort(at.Addr().String(), uint32(at.Port())) // one at most, or the list comes whole
		if here = slices.DeleteFunc(here, func(e catalog.Endpoint) bool { _, is := m.Member(e); return !is }); len(here) == 0 {
			w.Remove(at)
		} else if m.from >= 0 {
			m.add(w, at, here[0])
		}
	}
	return world.Encoded{Name: m.Glob(), Version: m.Revision(), Body: w.Body(m.Glob(), m.from < 0), Framed: true}
}

func (m roster) add(w *wire.Members, at netip.AddrPort, e catalog.Endpoint) {
	w.Add(at, e.Weight, reach.FurtherAddresses(e), m.mutual.Reaches(e.Labels, e.Port))
}

// spreadAssignment is a load assignment that names collections.
type spreadAssignment struct {
	slot
	partition *leds.Partition
}

var (
	_ world.Unrepeatable = spreadAssignment{}
	_ world.Referrer     = spreadAssignment{}
)

type spreadSlot struct{ slot }

// Slot implements [world.Subject].
func (a spreadAssignment) Slot() any { return spreadSlot{a.slot} }

// Refers implements [world.Referrer].
func (a spreadAssignment) Refers(to string) iter.Seq[string] {
	if to != wire.MemberURL {
		return nothing
	}
	return func(yield func(string) bool) {
		for _, g := range a.partition.Groups {
			if !yield(g.Collection) {
				return
			}
		}
	}
}

// Encode implements [world.Subject].
func (a spreadAssignment) Encode() world.Encoded { return a.encode(0) }

// times counts the sent assignments.
var times atomic.Int64

// EncodeOnce implements [push.Unrepeatable]. Envoy keeps its subscription to a
// collection through another assignment that names it in the same way, and then reads
// the assignment before, which it has freed. So no two name one in the same way: the
// time limit of each, which never ends, is another.
func (a spreadAssignment) EncodeOnce() world.Encoded {
	e := a.encode(time.Duration(times.Add(1)))
	e.Version = a.Encode().Version
	return e
}

// never is a time limit that does not end. Waiting is safe: the collections of an assignment
// exist, or another assignment follows.
const never = 365 * 24 * time.Hour

func (a spreadAssignment) encode(time time.Duration) world.Encoded {
	m := &wire.Collections{Name: a.clusterName(), Groups: a.partition.Groups}
	return encode(m.Name, wire.EndpointURL, m.Message(never+time))
}
