package push

import (
	"fmt"
	"time"
)

// unknownClaim is the claim of a subscriber that may hold any version.
var unknownClaim = VersionOf([]byte("what nobody knows"))

// Unknown is the claim of a WholeState subscriber that cannot name its version. The full
// set waits until every source has been listed.
func Unknown() *Version { return &unknownClaim }

// switched makes a subscriber take a type in another mode from now on. All names that it
// holds or asks for are considered again: the changes that a debounce delays are those of
// the other mode.
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
		i.want(h.Name, pending{})
	}
}

// begunWhole makes the next response the full set. NACKed names are in it in their current
// form, because which of them was at fault is unknown. After a NACK the set is due at once:
// the subscriber asked for it instead of increments.
func (i *interest) begunWhole(nacked bool) {
	i.clearNACKs()
	i.claim = Unknown()
	i.open.due = i.open.due || nacked
}

// begunDelta makes the next responses bring the difference from the held resources.
func (i *interest) begunDelta() {
	i.unsend()
	i.claim, i.guard, i.withheld = nil, false, withheld{}
	for h := range i.held.all {
		if h.Whole != nil {
			h.Label = h.Whole.Shared
		}
	}
	for name, n := range i.nacked {
		if h := i.holding(name); h != nil && h.Member == n.member {
			i.unsure(h) // the set that brought it was NACKed
		}
		n.group = max(n.group, 1) // alone the resource may be valid
		i.nacked[name] = n
	}
	i.retry()
}

// unsend reverts the changes of a full set that was not sent.
func (i *interest) unsend() {
	if i.open.serial == 0 {
		return
	}
	by := serialOf(i.open.serial)
	var unsent []string
	for h := range i.held.all {
		if h.serial == by {
			unsent = append(unsent, h.Name)
		}
	}
	for _, name := range unsent {
		if i.record.sentAt.IsZero() {
			i.release(name)
		} else {
			i.unsure(i.holding(name)) // the subscriber may have an earlier version
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

// withheld is why a due resource or set is not sent.
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

// unfit handles a full set that is too large for a message. A subscriber that takes
// increments gets them instead. Any other subscriber keeps its state.
func (d *draft) unfit() {
	if d.either {
		d.subscriber.switched(d.interest, Delta, false)
		d.answer = true
		return
	}
	d.withhold("", fmt.Sprintf("the full state has %d bytes, and a message may have %d: it is not sent, and not in pieces; have the client ask for increments",
		d.size, d.subscriber.engine.config.Largest))
	d.open.due, d.answer = false, false // until the next change
}

// skip handles a resource that is too large for a message. The subscriber keeps its
// version, as if it had NACKed the resource.
func (d *draft) skip(res *Resource) {
	delete(d.pending, res.Name)
	reason := fmt.Sprintf("%s has %d bytes, and a message may have %d: it is not sent", res.Name, res.Bytes(d.mode), d.subscriber.engine.config.Largest)
	d.note(res.Name, nack{member: res.Own.Member, at: time.Now(), reason: reason})
	d.withhold(res.Name, reason)
}

func (i *interest) withhold(name, reason string) {
	i.withheld = withheld{time.Now(), name, reason}
	s := i.subscriber
	if log := s.engine.config.Log; log != nil {
		log.Warn("a client is not sent what it should have", "client", s.Info.ID, "type", s.engine.TypeName(i.t), "err", reason)
	}
}
