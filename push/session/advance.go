package session

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Advance yields the responses that bring the client the resources of the current worlds
// that it lacks, type by type, as far as each type may send.
func Advance(s *Stream, l *Look) iter.Seq[*Response] {
	return func(yield func(*Response) bool) {
		s.relations = l.Types
		s.deliver()
		var switched []*State // to another mode
		for _, t := range l.Types.Order {
			if of := s.state(t); of != nil {
				before := of.mode
				r := assemble(s, of, l)
				if of.mode != before {
					switched = append(switched, of)
				}
				if r != nil && !yield(r) {
					return
				}
			}
		}
		// Once more: later types have brought names, or have sent the resources that removals of
		// earlier types waited for. A type in another mode waits for the next turn: changes since
		// these worlds were read have been marked for its previous mode only.
		for _, t := range l.Types.Order {
			if of := s.state(t); of != nil && of.waiting() > 0 && !slices.Contains(switched, of) {
				if r := assemble(s, of, l); r != nil && !yield(r) {
					return
				}
			}
		}
	}
}

// assemble returns the next response of a type; nil if there is nothing to send, or the
// previous response was not answered.
func assemble(s *Stream, of *State, l *Look) (r *Response) {
	info := l.Types.All[of.t]
	from := l.Source(info)
	defer s.deliver()
	switch {
	case from.World == nil: // its producer is not primed
		return nil
	case of.rests():
		of.cover(l.Marked[of.t][of.mode])
		return nil
	case of.Blocks():
		return nil
	case guarded(of, info, from, l.Reader):
		of.stirUnlisted()
		s.roused.removals = true // removals wait for no guarded type
		if of.either {
			switchMode(of, world.Delta, false) // increments delete nothing
		}
		return nil
	}
	d := &draft{State: of, stream: s, look: l, info: info, world: from.World, out: &Response{Type: of.t, Mode: of.mode}}
	d.compose()
	if d.full && d.waiting() > 0 || d.incomplete() {
		return nil // a later turn completes the set
	}
	r = d.finish()
	s.deliver()
	if d.waiting() == 0 && d.again == 0 {
		d.cover(l.Marked[d.t][d.mode])
	}
	return r
}

// guarded reports whether a full set has to wait until every source has been listed. A
// client that resumes deletes every resource that the set lacks, and a source that is not
// listed yet may still have that resource. The set may go at once if it contains every name
// that the client asks for, or all that the client holds.
//
// If the world remembers all that was ever sent, a client with an unknown claim does not
// wait: its resources came from listed sources. A client with a known claim may have been
// served by another Isthmus. It waits, unless its version was issued here. The wait ends
// when the sources that are not required have been waited for long enough.
func guarded(s *State, info *world.Info, from Source, r *world.Reader) bool {
	w := from.World
	if !s.full || s.claim == nil || *s.claim == (world.Version{}) || s.ours || from.Waited || w.Complete() || from.Remembers && *s.claim == unknownClaim {
		s.guard = false
		return false
	}
	if s.guard && s.wildcard {
		return true // one look through all names is enough
	}
	view, names, lacks := s.view.View, s.allNamed, s.wildcard
	if s.wildcard {
		names = w.Names(view, info.Row)
	}
	var sum world.Version
	for name := range names {
		res := r.Resource(w, view, info.Row, name)
		if res == nil {
			lacks = true
			continue
		}
		sum = sum.With(res.Own.Member)
	}
	s.guard = lacks && sum != *s.claim
	return s.guard
}

// draft is a response in the making.
type draft struct {
	*State
	stream *Stream
	look   *Look
	info   *world.Info
	world  world.World
	out    *Response
}

// compose considers the names of this turn.
func (d *draft) compose() {
	d.open.due = d.open.due || d.answer
	d.bring()
	d.stream.deliver()
	listing := d.expand || len(d.fresh) > 0
	d.expandAll()
	most := d.stream.limits.Turn
	names := d.retryGroup(most)
	if names == nil {
		if d.spec.Together {
			most = math.MaxInt
		}
		d.unpack(most)
		names = d.order(most)
	}
	for _, name := range names {
		d.consider(name)
		if _, left := d.pending[name]; !left {
			d.stir(name)
		}
		d.stream.deliver()
	}
	if listing && len(d.fresh) == 0 {
		d.stirUnlisted()
		d.stream.deliver()
	}
	d.considered()
	d.markFirst()
}

// expandAll makes the names of a new wildcard pending.
func (d *draft) expandAll() {
	if !d.expand {
		return
	}
	d.expand = false
	for name := range d.world.Names(d.view.View, d.info.Row) {
		d.want(name, Pending{})
	}
}

// markFirst marks a response of the first state, and the response that completes it. The
// completing response is sent even without content.
func (d *draft) markFirst() {
	if !d.first {
		return
	}
	d.out.First, d.out.Ends = true, d.again == 0 && d.waiting() == 0
	d.open.due = d.open.due || d.out.Ends
}

// consider decides how to handle one pending name. The resource is included, is already
// held, has to wait, or does not fit and stays pending.
func (d *draft) consider(name string) {
	p := d.pending[name]
	if !d.subscribed(name) {
		d.gone(name, p) // only a resumed name can be pending and not subscribed
		return
	}
	if d.outside(name) {
		delete(d.pending, name)
		return
	}
	f, ok, bad := d.look.resolve(d.world, d.info.Row, lookup{d.view, d.t, name, d.base(name, p)})
	if bad {
		d.bad(name, p)
		return
	}
	if _, alias := f.subject.(world.Alias); !ok || alias && !d.named(name) {
		d.gone(name, p)
		return
	}
	res := f.res
	h := d.holding(name)
	same := h != nil && h.is(res.Own.Member) && !p.again()
	// A resource that the client already has waits for nothing. To look up its needs may be
	// expensive: a listener may need the hosts of thousands of services.
	if !same && (d.takeBack(name, res, p) || d.heldBack(name, p, f.subject)) {
		return
	}
	switch {
	case same:
		if h.known == claimed {
			d.share(h, res)
			h.known = confirmed
		} else if d.full && h.Whole == nil { // sent as an increment
			d.share(h, res)
		}
		delete(d.pending, name)
	case d.nackedAs(name, res.Own.Member) && !p.again():
		delete(d.pending, name)
	case !d.full && d.tooBig(res.Bytes(d.mode)):
		d.skip(res)
	case d.tooLarge(res.Bytes(d.mode)):
		// Stays pending: the rest goes when this response is answered.
	default:
		d.include(d.look.Once(f.subject, res), p, f.subject)
	}
}

// base returns the version of a resource that an increment may start from: the client has
// ACKed it and no later one is in flight. It is zero for a type without increments, and for
// a client with an unknown version. The client then gets a form that replaces any version.
func (d *draft) base(name string, p Pending) world.Version {
	if !d.spec.Increments || d.mode != world.Delta || p.again() {
		return world.Version{}
	}
	h := d.holding(name)
	if h == nil || h.known != sent || h.serial > serialOf(d.landed) {
		return world.Version{}
	}
	return h.Version
}

// bad handles a name for which the look-up panicked. A client that has the resource keeps
// it; for others the resource does not exist.
func (d *draft) bad(name string, p Pending) {
	if d.holding(name) == nil {
		d.gone(name, p)
		return
	}
	delete(d.pending, name)
	if !d.full {
		d.miss(name)
	}
}

// tooLarge reports whether so many bytes would make the response larger than the peer may
// take. Neither a full set nor a resource can be split.
func (d *draft) tooLarge(size int) bool {
	return !d.full && !d.spec.Together && d.out.Bytes > 0 && d.out.Bytes+size > d.stream.limits.Budget
}

// tooBig reports whether so many bytes are more than a message may have.
func (d *draft) tooBig(size int) bool {
	most := d.stream.limits.Largest
	return most > 0 && size > most
}

// skip handles a resource that is too large for a message. The client keeps its version, as
// if it had NACKed the resource.
func (d *draft) skip(res *world.Resource) {
	delete(d.pending, res.Name)
	reason := fmt.Sprintf("%s has %d bytes, and a message may have %d: it is not sent", res.Name, res.Bytes(d.mode), d.stream.limits.Largest)
	d.note(res.Name, nack{member: res.Own.Member, at: d.look.Now, reason: reason})
	d.withhold(res.Name, reason, d.look.Now)
}

// include adds a resource to the response. A full set gets its resources when it is
// complete.
func (d *draft) include(res *world.Resource, p Pending, subject world.Subject) {
	if !d.full {
		d.out.Resources = append(d.out.Resources, res)
		d.out.Bytes += res.Bytes(d.mode)
	}
	d.carry(res.Name, res.Own.Member, p)
	delete(d.removed, res.Name) // a NACK of the removal no longer matters
	d.enter(res, d.open.serial)
	if d.full {
		d.accompanyLater(res.Name, subject, p)
	} else {
		d.accompany(subject, p)
	}
}

// carry records a name that the response brings, with its content or, for a removal, with
// none.
func (d *draft) carry(name string, m world.Member, p Pending) {
	d.number()
	if !d.full || d.alter(name, p) {
		d.open.brought++
	}
	d.open.due = d.open.due || d.full
	d.open.since = oldest(d.open.since, p.Since)
	d.send(name)
	if d.full || d.nacked[name].member == m {
		d.dropNACK(name) // a full set has the others in it anyway; else this is the retry itself
	} else {
		d.clearNACK(name)
	}
}

// number reserves the serial of the response.
func (d *draft) number() {
	if d.open.serial == 0 {
		d.stream.serial++
		d.open.serial = d.stream.serial
	}
}

// finish returns the response; nil if there is nothing to send.
func (d *draft) finish() *Response {
	if len(d.out.Resources) == 0 && len(d.out.Removed) == 0 && !d.open.due {
		return nil
	}
	if d.full {
		d.wholeSet()
		if d.tooBig(d.out.Bytes) {
			d.unfit()
			return nil
		}
		d.record.withheld = withheld{}
		for _, b := range d.open.brings {
			d.accompany(b.subject, b.p)
		}
	}
	d.number()
	d.out.Serial, d.out.Version, d.out.Since = d.open.serial, d.sum, d.open.since
	d.launch(&unanswered{
		serial: d.open.serial, version: d.sum, brought: d.open.brought,
		since: d.open.since, waits: d.look.Now, behind: d.open.behind,
	})
	d.answer, d.claim = false, nil
	d.first = d.first && !d.out.Ends
	d.record.send(d.look.Now, d.sum)
	return d.out
}

// wholeSet fills the response of a full type with everything that the client holds. A
// resource sent as an increment may no longer be encodable, after a panic. The set lacks
// such a resource, and so removes it.
func (d *draft) wholeSet() {
	d.out.Resources = make([]*world.Resource, 0, d.held.N)
	var lost []string
	for h := range d.held.All {
		if h.Whole == nil {
			lost = append(lost, h.Name)
			continue
		}
		d.out.Resources = append(d.out.Resources, h.Whole)
		d.out.Bytes += h.Whole.Bytes(d.mode)
	}
	slices.SortFunc(d.out.Resources, func(a, b *world.Resource) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range lost {
		d.removeNow(name, Pending{})
	}
}

// unfit handles a full set that is too large for a message. A client that takes increments
// gets them instead. Any other client keeps its state.
func (d *draft) unfit() {
	if d.either {
		switchMode(d.State, world.Delta, false)
		d.answer = true
		return
	}
	d.withhold("", fmt.Sprintf("the full state has %d bytes, and a message may have %d: it is not sent, and not in pieces; have the client ask for increments",
		d.out.Bytes, d.stream.limits.Largest), d.look.Now)
	d.open.asked = d.open.asked || d.answer
	d.open.due, d.answer = false, false // until the next change
}
