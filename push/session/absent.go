package session

import "github.com/isthmus-mesh/isthmus/push/world"

// mostEmpty bounds the resources of a full set that may also contain empty resources, for
// names that do not exist. A full set is sent as one, so it must not grow with the names
// that a client asks for.
const mostEmpty = 1024

// gone handles a name that does not exist.
func (d *draft) gone(name string, p Pending) {
	h := d.holding(name)
	absent := d.absence(name)
	complete := d.world.Complete()
	if h == nil && complete && d.nacked[name].member != (world.Member{}) {
		d.clearNACK(name) // a NACKed resource, or one too large for a message
	}
	switch {
	case h == nil && !p.again(),
		h == nil && !p.force && d.mode == world.Delta && absent == world.Removal, // the removal was sent when the client asked
		h == nil && d.full && absent == world.Empty && !d.named(name),            // only a client that names it is sent the empty resource
		d.nackedAs(name, world.Member{}) && !p.again():
		delete(d.pending, name)
	case !complete && !d.wasServed(name) && (h == nil && !d.nackedAs(name, world.Member{}) || h != nil && h.known == claimed) && (!d.full || absent == world.Empty):
		// It may belong to a source that has not been listed yet, unless its client has it from
		// here, where that source has never said anything. A removal that was NACKed with others
		// was sent because the name is known to be gone.
		d.unprove(name)
	case absent != world.Empty && d.takeBack(name, nil, p):
		// It came and went before the set was sent.
	case h != nil && d.referred(name, p):
		// The removal waits: the resources that refer to the name go first.
	case d.full && (absent != world.Empty || !d.named(name) || d.held.N >= mostEmpty):
		d.open.due = true
		d.removeNow(name, p)
	case h == nil && absent == world.Silence:
		delete(d.pending, name)
		d.clearNACK(name)
	case d.mode == world.Delta && (absent == world.Removal || h != nil && (absent != world.Empty || !d.named(name))):
		if d.tooLarge(len(name)) {
			return
		}
		d.out.Removed = append(d.out.Removed, name)
		d.out.Bytes += len(name)
		d.removeNow(name, p)
	case absent == world.Silence:
		d.keep(name)
	default:
		d.sendEmpty(name, p)
	}
}

// wasServed reports whether the client came with a version from here that covers a name: a
// full set covers all names, and otherwise the name was sent from here.
func (d *draft) wasServed(name string) bool {
	return d.ours && (d.full || d.look.HasSent(d.spec, name))
}

// absence is how a name that stands for nothing is answered.
func (d *draft) absence(name string) world.Absence {
	absent := d.spec.AbsentFor(d.stream.kind, d.mode)
	if absent == world.Empty && (d.full || d.mode == world.Delta) && d.look.Empty(d.spec, name) == nil {
		return world.Removal // there is no empty resource of that name
	}
	return absent
}

// removeNow makes the response remove a name.
func (d *draft) removeNow(name string, p Pending) {
	_, matters := d.nacked[name]
	matters = matters || d.holding(name) != nil
	d.carry(name, world.Member{}, p)
	delete(d.open.brings, name)
	d.release(name)
	if matters { // otherwise it only answers a request for an absent name: nothing depends on its ACK
		d.remove(name)
	}
}

// sendEmpty sends the type's empty resource to a client that cannot be sent a removal. If the
// type has no empty resource, nothing is sent.
func (d *draft) sendEmpty(name string, p Pending) {
	res := d.look.Empty(d.spec, name)
	h := d.holding(name)
	same := res != nil && h != nil && h.is(res.Own.Member)
	switch {
	case res == nil:
		d.keep(name)
	case same && !p.again():
		if h.known == claimed {
			d.share(h, res)
			h.known = confirmed
		}
		delete(d.pending, name)
	case d.nackedAs(name, res.Own.Member) && !p.again():
		delete(d.pending, name)
	case d.takeBack(name, res, p):
	case d.tooLarge(res.Bytes(d.mode)):
	default:
		d.include(res, p, nil)
	}
}

// keep handles a name that no longer exists when the protocol has no way to express that:
// the client keeps its resource.
func (d *draft) keep(name string) {
	if !d.named(name) {
		d.forget(name) // there is no bound on names that come and go
		return
	}
	delete(d.pending, name)
	d.clearNACK(name)
}

// A full set may take several turns, each with newer worlds. A name that changes and changes
// back in the meantime leaves no difference: the set is sent only if another name differs from
// the last set, or if the client asked for it.

// alter records that the full set in the making changes a name, and reports whether it did
// not change the name before.
func (d *draft) alter(name string, p Pending) (anew bool) {
	if d.answer {
		return true // the first set is sent in any case
	}
	_, known := d.open.before[name]
	_, nacked := d.nacked[name]
	h := d.holding(name)
	switch {
	case p.again(), nacked: // sent although the client may have it
		d.open.asked = true
		delete(d.open.before, name)
	case known, h != nil && d.opened(h), d.removed[name] == d.open.serial:
		return false
	default:
		if d.open.before == nil {
			d.open.before = map[string]holding{}
		}
		if h == nil {
			h = &holding{}
		}
		d.open.before[name] = *h
	}
	return true
}

// takeBack undoes the change of a name by the full set in the making, if the client already has
// the resource. Nil means that the name does not exist.
func (d *draft) takeBack(name string, res *world.Resource, p Pending) bool {
	was, altered := d.open.before[name]
	if !altered || p.again() || was.Free() != (res == nil) || res != nil && !was.is(res.Own.Member) {
		return false
	}
	delete(d.removed, name)
	if res == nil {
		d.release(name)
	} else {
		d.enter(res, 0)
		h := d.holding(name)
		h.serial, h.known = was.serial, was.known
	}
	d.send(name)
	d.open.brought--
	d.unalter(name)
	return true
}
