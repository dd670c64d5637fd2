package push

import "github.com/isthmus-mesh/isthmus/push/world"

// mostEmpty bounds the resources of a full set that may also contain empty resources, for
// names that do not exist. A full set is sent as one, so it must not grow with the names
// that a client asks for.
const mostEmpty = 1024

// gone handles a name that does not exist.
func (d *draft) gone(name string, p pending) {
	h := d.holding(name)
	absent := d.absence(name)
	if h == nil && d.world.Complete() && d.nacked[name].member != (world.Member{}) {
		d.clearNACK(name) // a NACKed resource, or one too large for a message
	}
	switch {
	case h == nil && !p.again(),
		h == nil && !p.force && d.mode == Delta && absent == Removal, // the removal was sent when the client asked
		h == nil && d.full && absent == Empty && !d.named(name),      // only a subscriber that names it is sent the empty resource
		d.nackedAs(name, world.Member{}) && !p.again():
		delete(d.pending, name)
	case !d.world.Complete() && !d.wasServed(name) && (h == nil && !d.nackedAs(name, world.Member{}) || h != nil && h.known == claimed) && (!d.full || absent == Empty):
		// It may belong to a source that has not been listed yet, unless its subscriber
		// has it from here, where that source has never said anything. A removal that was
		// NACKed with others was sent because the name is known to be gone.
		delete(d.pending, name)
		if d.unproven == nil {
			d.unproven = map[string]struct{}{}
		}
		d.unproven[name] = struct{}{}
	case h != nil && d.referred(name, p):
		// The removal waits: the resources that refer to the name go first.
	case d.full && (absent != Empty || !d.named(name) || d.held.n >= mostEmpty):
		d.open.due = true
		d.remove(name, p)
	case h == nil && absent == Silence:
		delete(d.pending, name)
		d.clearNACK(name)
	case d.mode == Delta && (absent == Removal || h != nil && (absent != Empty || !d.named(name))):
		if d.tooLarge(len(name)) {
			return
		}
		d.out.Removed = append(d.out.Removed, name)
		d.size += len(name)
		d.remove(name, p)
	case absent == Silence:
		d.keep(name)
	default:
		d.void(name, p)
	}
}

// wasServed reports whether the subscriber came with a version from here that covers a name: a
// full set covers all names, and otherwise the name was sent from here.
func (d *draft) wasServed(name string) bool {
	return d.ours && (d.full || d.subscriber.engine.reader.HasSent(&d.info.TypeSpec, name))
}

// absence is how a name that stands for nothing is answered.
func (d *draft) absence(name string) Absence {
	absent := d.info.AbsentFor(d.subscriber.client.Kind, d.mode)
	if absent == Empty && (d.full || d.mode == Delta) && d.subscriber.engine.reader.Void(&d.info.TypeSpec, name) == nil {
		return Removal // there is no empty resource of that name
	}
	return absent
}

func (d *draft) remove(name string, p pending) {
	_, matters := d.nacked[name]
	matters = matters || d.holding(name) != nil
	d.brings(name, world.Member{}, p)
	delete(d.open.brings, name)
	d.release(name)
	if !matters {
		return // the removal only answers a request for an absent name: nothing depends on its ACK
	}
	if d.removed == nil {
		d.removed = map[string]uint64{}
	}
	d.removed[name] = d.open.serial
}

// void sends the type's empty resource to a subscriber that cannot be sent a
// removal. If the type has no empty resource, nothing is sent.
func (d *draft) void(name string, p pending) {
	res := d.subscriber.engine.reader.Void(&d.info.TypeSpec, name)
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
	case d.tooLarge(res.Bytes(d.mode)):
	default:
		d.include(res, p, nil)
	}
}

// keep handles a name that no longer exists when the protocol has no way to express that:
// the subscriber keeps its resource.
func (d *draft) keep(name string) {
	if !d.named(name) {
		d.forget(name) // there is no bound on names that come and go
		return
	}
	delete(d.pending, name)
	d.clearNACK(name)
}
