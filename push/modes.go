package push

import (
	"fmt"
	"time"
)

// unknownClaim is the claim of a subscriber that may hold anything.
var unknownClaim = VersionOf([]byte("what nobody knows"))

// Unknown is the claim of a WholeState subscriber that cannot say what it holds. The
// full set waits until every source has been listed.
func Unknown() *Version { return &unknownClaim }

// switched has a subscriber take a type in another mode from now on. Whatever it
// holds and asks for is looked at again: changes that wait for a debounce wait in the
// other mode.
func (s *Subscriber) switched(i *interest, to Mode, nacked bool) {
	if i.mode == to {
		return
	}
	s.engine.index.setMode(i, to)
	info := s.engine.table.Load().types[i.t]
	if full := info.Whole && to == WholeState; full != i.full {
		if i.full = full; full {
			i.begunWhole(nacked)
		} else {
			i.begunDelta()
		}
	}
	i.expand = i.wildcard
	for h := range i.held.all {
		i.want(h.name, pending{})
	}
}

// begunWhole has the next response be the full set. NACKed names are in it as they are
// now, because nothing says which of them was at fault. After a NACK the set is due
// at once: the subscriber asked for it instead of increments.
func (i *interest) begunWhole(nacked bool) {
	i.clearNACKs()
	i.claim = Unknown()
	i.open.due = i.open.due || nacked
}

// begunDelta has the next responses bring what differs from what the subscriber has.
func (i *interest) begunDelta() {
	i.unsend()
	i.claim, i.guard, i.withheld = nil, false, withheld{}
	for h := range i.held.all {
		if h.whole != nil {
			h.label = h.whole.shared
		}
	}
	for name, n := range i.nacked {
		if h := i.holding(name); h != nil && h.member == n.member {
			i.unsure(h) // the set that brought it was NACKed
		}
		n.group = max(n.group, 1) // by itself it may be fine
		i.nacked[name] = n
	}
	i.retry()
}

// unsend takes back what was put into a full set that was not sent.
func (i *interest) unsend() {
	if i.open.serial == 0 {
		return
	}
	by := serialOf(i.open.serial)
	var unsent []string
	for h := range i.held.all {
		if h.serial == by {
			unsent = append(unsent, h.name)
		}
	}
	for _, name := range unsent {
		if i.record.sentAt.IsZero() {
			i.release(name)
		} else {
			i.unsure(i.holding(name)) // it may have an earlier version
		}
	}
	for name, serial := range i.removed {
		if serial != i.open.serial {
			continue
		}
		if delete(i.removed, name); i.holding(name) == nil && !i.record.sentAt.IsZero() {
			i.resume(name, Version{})
			i.unsure(i.holding(name))
		}
	}
	i.open.behind.rouse()
	i.open = opening{due: i.open.due}
}

// withheld is why something is not sent that the subscriber should have.
type withheld struct {
	since  time.Time
	name   string // of the resource; empty for a full set
	reason string
}

// tooBig reports whether so many bytes are more than a message may have.
func (d *draft) tooBig(size int) bool {
	most := d.subscriber.engine.config.Largest
	return most > 0 && size > most
}

// unfit deals with a full set that is too large for the subscriber. If that takes
// increments, it gets them. Else it keeps what it has.
func (d *draft) unfit() {
	if d.either {
		d.subscriber.switched(d.interest, Delta, false)
		d.answer = true
		return
	}
	d.withhold("", fmt.Sprintf("the full state has %d bytes, and a message may have %d: it is not sent, and not in pieces; have the client ask for increments",
		d.size, d.subscriber.engine.config.Largest))
	d.open.due, d.answer = false, false // until something changes
}

// skip deals with a resource that no message can carry. The subscriber keeps what
// it has, as if it had NACKed the resource.
func (d *draft) skip(res *Resource) {
	delete(d.pending, res.Name)
	reason := fmt.Sprintf("%s has %d bytes, and a message may have %d: it is not sent", res.Name, res.size(d.mode), d.subscriber.engine.config.Largest)
	d.note(res.Name, nack{member: res.member, at: time.Now(), reason: reason})
	d.withhold(res.Name, reason)
}

func (i *interest) withhold(name, reason string) {
	i.withheld = withheld{time.Now(), name, reason}
	s := i.subscriber
	if log := s.engine.config.Log; log != nil {
		log.Warn("a client is not sent what it should have", "client", s.Info.ID, "type", s.engine.TypeName(i.t), "err", reason)
	}
}
