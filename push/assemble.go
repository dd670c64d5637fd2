package push

import (
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// draft is a response in the making.
type draft struct {
	*interest
	turn  *turn
	info  *typeInfo
	world World
	view  View

	out  *Response
	size int
}

// assemble sends the next response of a type, if there is content to send and the previous
// response was answered.
func (s *Subscriber) assemble(t *turn, typ Type) {
	i := s.interest(typ)
	if i == nil {
		return
	}
	info := t.table.types[typ]
	w := t.world(s.engine, info)
	switch {
	case w == nil:
		return // its producer is not primed
	case i.rests():
		i.cover(t.marked[typ][i.mode])
		return
	case i.blocks():
		return
	case i.guarded(info, w, t.waited(s.engine, info), t.remembers(s.engine, info)):
		i.stirUnlisted()
		s.rouseRemovals() // removals wait for no guarded type
		if i.either {
			s.switched(i, Delta, false) // increments delete nothing
		}
		return
	}
	d := &draft{interest: i, turn: t, info: info, world: w, view: i.view.View, out: &Response{Type: typ, Mode: i.mode}}
	d.compose()
	if d.full && d.waiting() > 0 || d.incomplete() {
		return // a later turn completes the set
	}
	d.send()
	if d.waiting() == 0 && d.again == 0 {
		d.cover(t.marked[typ][i.mode])
	}
}

// compose considers the names of this turn.
func (d *draft) compose() {
	d.open.due = d.open.due || d.answer
	d.bring()
	listing := d.expand || len(d.fresh) > 0
	d.expandAll()
	names := d.retryGroup()
	if names == nil {
		names = d.order(d.subscriber.engine.atOnce(d.info))
	}
	for _, name := range names {
		d.consider(name)
		if _, left := d.pending[name]; !left {
			d.stir(name)
		}
	}
	if listing && len(d.fresh) == 0 {
		d.stirUnlisted()
	}
	if d.urgent {
		d.urgent = false
		for _, p := range d.pending {
			d.urgent = d.urgent || p.urgent
		}
	}
	d.shrink()
	d.markFirst()
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

func (d *draft) empty() bool {
	return len(d.out.Resources) == 0 && len(d.out.Removed) == 0 && !d.open.due
}

// guarded reports whether a full set has to wait until every source has been listed. A
// subscriber that resumes deletes every resource that the set lacks, and a source that is
// not listed yet may still have that resource. The set may go at once if it contains every
// name that the subscriber asks for, or all that the subscriber holds.
//
// If the world remembers all that was ever sent, a subscriber with an unknown claim does
// not wait: its resources came from listed sources. A subscriber with a known claim may
// have been served by another Isthmus. It waits, unless its version was issued here. The
// wait ends when the sources that are not required have been waited for long enough.
func (i *interest) guarded(info *typeInfo, w World, waited, remembers bool) bool {
	if !i.full || i.claim == nil || *i.claim == (Version{}) || i.ours || waited || w.Complete() || remembers && *i.claim == unknownClaim {
		i.guard = false
		return false
	}
	if i.guard && i.wildcard {
		return true // one look through all names is enough
	}
	view, names, lacks := i.view.View, i.allNamed, i.wildcard
	if i.wildcard {
		names = w.Names(view, info.Row)
	}
	var sum Version
	for name := range names {
		res := i.subscriber.engine.reader.Resource(w, view, info.Row, name)
		if res == nil {
			lacks = true
			continue
		}
		sum = sum.With(res.Own.Member)
	}
	i.guard = lacks && sum != *i.claim
	return i.guard
}

// expandAll makes the names of a new wildcard pending.
func (d *draft) expandAll() {
	if !d.expand {
		return
	}
	d.expand = false
	for name := range d.world.Names(d.view, d.info.Row) {
		d.want(name, pending{})
	}
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
	f, ok, bad := d.resolve(name, d.base(name, p))
	if bad {
		d.bad(name, p)
		return
	}
	if !ok {
		d.gone(name, p)
		return
	}
	res := f.res
	h := d.holding(name)
	same := h != nil && h.is(res.Own.Member) && !p.again()
	// A resource that the subscriber already has waits for nothing. Looking up its needs may
	// be expensive: a listener may need the hosts of thousands of services.
	if !same && d.heldBack(name, p, f.subject) {
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
		d.include(d.subscriber.engine.reader.Once(f.subject, res), p, f.subject)
	}
}

// bad handles a name for which the look-up panicked. A subscriber that has the resource
// keeps it; for others the resource does not exist.
func (d *draft) bad(name string, p pending) {
	if d.holding(name) == nil {
		d.gone(name, p)
		return
	}
	delete(d.pending, name)
	d.missed(name)
}

// nackedAs reports whether a name was NACKed with this very content. Sending the content
// again would be useless.
func (d *draft) nackedAs(name string, m world.Member) bool {
	n, was := d.nacked[name]
	return was && n.member == m
}

// tooLarge reports whether so many bytes would make the response larger than the peer may
// take. Neither a full set nor a resource can be split.
func (d *draft) tooLarge(size int) bool {
	return !d.full && !d.info.Together && d.size > 0 && d.size+size > d.subscriber.engine.config.Budget
}

// include adds a resource to the response. A full set gets its resources when it
// is sent.
func (d *draft) include(res *Resource, p pending, subject Subject) {
	if !d.full {
		d.out.Resources = append(d.out.Resources, res)
		d.size += res.Bytes(d.mode)
		if d.mode == WholeState {
			d.subscriber.engine.reader.NoteName(&d.info.TypeSpec, res)
		}
	}
	d.brings(res.Name, res.Own.Member, p)
	delete(d.removed, res.Name) // a NACK of the removal no longer matters
	d.hold(res, d.open.serial)
	if d.full {
		d.accompanyLater(res.Name, subject, p)
	} else {
		d.accompany(subject, p)
	}
}

// brings records a name that the response brings, with its content or, for a removal, with
// none.
func (d *draft) brings(name string, m world.Member, p pending) {
	if d.open.serial == 0 {
		d.subscriber.serial++
		d.open.serial = d.subscriber.serial
	}
	d.open.brought++
	d.open.due = d.open.due || d.full
	d.open.since = oldest(d.open.since, p.since)
	delete(d.pending, name)
	delete(d.unproven, name) // not earlier: by its turn the name may exist again
	if d.full || d.nacked[name].member == m {
		d.dropNACK(name) // a full set has the others in it anyway; else this is the retry itself
	} else {
		d.clearNACK(name)
	}
}

// send hands the response to the stream, if there is one.
func (d *draft) send() {
	if d.empty() {
		return
	}
	if d.full {
		d.wholeSet()
		if d.tooBig(d.size) {
			d.unfit()
			return
		}
		d.withheld = withheld{}
		for _, b := range d.open.brings {
			d.accompany(b.subject, b.p)
		}
	}
	s, now := d.subscriber, time.Now()
	if d.open.serial == 0 {
		s.serial++
		d.open.serial = s.serial
	}
	d.out.Serial, d.out.Version, d.out.since = d.open.serial, d.sum, d.open.since
	d.launch(&flight{serial: d.open.serial, version: d.sum, brought: d.open.brought, since: d.open.since, waits: now, behind: d.open.behind})
	if d.mode == WholeState {
		s.engine.reader.Issued.Add(d.sum)
	}
	d.answer, d.claim, d.open = false, nil, opening{}
	d.first = d.first && !d.out.Ends
	d.record.send(now, d.sum)
	d.info.counts.sent(len(d.out.Resources), d.size)
	select {
	case s.out <- d.out:
	default:
		s.engine.fail(s) // the client answered responses that it was not sent, so the outbox is full
	}
}

// wholeSet fills the response of a full type with everything that the subscriber holds. A
// resource sent as an increment may no longer be encodable, after a panic. The set lacks
// such a resource, and so removes it.
func (d *draft) wholeSet() {
	d.out.Resources = make([]*Resource, 0, d.held.n)
	var lost []string
	for h := range d.held.all {
		if h.Whole == nil {
			lost = append(lost, h.Name)
			continue
		}
		d.out.Resources = append(d.out.Resources, h.Whole)
		d.size += h.Whole.Bytes(d.mode)
	}
	slices.SortFunc(d.out.Resources, func(a, b *Resource) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range lost {
		d.remove(name, pending{})
	}
}
