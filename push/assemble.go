package push

import (
	"maps"
	"slices"
	"time"
)

// advance sends the subscriber what it lacks of the current world, as far as it
// is the turn of each type.
func (s *Subscriber) advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.catchUp()
	if w == nil {
		return
	}
	for t := range s.types {
		s.assemble(w, Type(t), !s.engine.config.Types[t].RemoveLast || !s.asksAfter(Type(t)))
	}
	for t := range s.types {
		if s.engine.config.Types[t].RemoveLast && s.settledAfter(Type(t)) {
			s.assemble(w, Type(t), true)
		}
	}
	s.block()
}

// catchUp takes note of what a subscriber has to look at, and returns the world
// to look at it in; nil if there is none, or no subscriber any more.
func (s *Subscriber) catchUp() World {
	// Read under the lock, after any request was taken in: a name that is in
	// the index by now is either found in this world or marked by the next.
	s.engine.step.RLock()
	defer s.engine.step.RUnlock()
	current := s.engine.world.Load()
	if s.closed || current == nil {
		return nil
	}
	s.review(*current)
	s.takeMarks()
	return *current
}

// asksAfter reports whether the subscriber takes types whose removals do not
// wait, later in the order: those that may refer to this type.
func (s *Subscriber) asksAfter(t Type) bool {
	for later := int(t) + 1; later < len(s.types); later++ {
		if s.types[later].asked && !s.engine.config.Types[later].RemoveLast {
			return true
		}
	}
	return false
}

// settledAfter reports whether those types have been answered.
func (s *Subscriber) settledAfter(t Type) bool {
	for later := int(t) + 1; later < len(s.types); later++ {
		if s.types[later].blocks() && !s.engine.config.Types[later].RemoveLast {
			return false
		}
	}
	return true
}

// draft is a response in the making.
type draft struct {
	*Subscriber
	world    World
	t        Type
	st       *state
	removals bool // may be included

	out     Response
	serial  uint64 // of the response, if it comes to one
	brought int    // names that are new in it
	since   time.Time
	size    int
	due     bool // it is sent even without content
}

// assemble sends the next response of a type, if there is anything to send and
// the one before was answered.
func (s *Subscriber) assemble(w World, t Type, removals bool) {
	st := &s.types[t]
	if !st.asked || st.blocks() || st.rests() || s.guarded(w, t) {
		return
	}
	d := &draft{Subscriber: s, world: w, t: t, st: st, removals: removals, serial: s.serial + 1, due: st.answer}
	d.expand()
	st.retryHalf()
	if len(st.pending) == 0 && !d.due {
		return
	}
	names := st.order()
	for _, name := range names {
		d.look(name)
	}
	st.urgent = st.urgent && slices.ContainsFunc(names, func(name string) bool { return st.pending[name].urgent })
	st.relieve()
	if !d.send() && st.again {
		s.engine.queue.add(s, false) // no answer will come that would bring the next turn
	}
}

// guarded reports whether a full set has to wait until every source has been
// listed. A subscriber that resumes would take what is not in it for gone, and
// what it holds may be what a source is yet to say. It is safe if everything it
// asks for is there, or if what is there is all it holds.
func (s *Subscriber) guarded(w World, t Type) bool {
	st := &s.types[t]
	if !st.full || st.claim == nil || *st.claim == (Version{}) || w.Complete() {
		st.guard = false
		return false
	}
	if st.guard && st.wildcard {
		return true // to look through everything once is enough
	}
	names, lacks := maps.Keys(st.names), st.wildcard
	if st.wildcard {
		names = w.Names(s.view, t)
	}
	var sum Version
	for name := range names {
		subject, ok, _ := s.engine.find(w, s.view, t, name)
		if !ok {
			lacks = true
			continue
		}
		res := s.engine.encoded(subject, name)
		if res == nil {
			lacks = true
			continue
		}
		sum = sum.plus(memberHash(name, res.Version))
	}
	st.guard = lacks && sum != *st.claim
	return st.guard
}

// expand turns a wildcard that was just asked for into names.
func (d *draft) expand() {
	if !d.st.expand {
		return
	}
	d.st.expand = false
	for name := range d.world.Names(d.view, d.t) {
		d.st.want(name, pending{})
	}
}

// look decides what becomes of one pending name: it is included, it is as the
// subscriber has it, or it has to wait and stays pending.
func (d *draft) look(name string) {
	st := d.st
	p := st.pending[name]
	if !st.subscribed(name) {
		d.gone(name, p) // only a resumed name can be pending and not subscribed
		return
	}
	subject, ok, bad := d.engine.find(d.world, d.view, d.t, name)
	if !ok && !bad {
		d.gone(name, p)
		return
	}
	if d.heldBack(name) {
		return
	}
	res := d.encoded(subject, name, bad)
	if res == nil {
		d.bad(name, p)
		return
	}
	delete(st.unproven, name)
	h, has := st.held[name]
	same := has && !h.unknown && h.version == res.Version
	switch {
	case same && !p.force:
		h.resumed = false
		st.held[name] = h
		delete(st.pending, name)
	case d.refusedAs(name, res.Version) && !p.force:
		delete(st.pending, name)
	case d.tooLarge(res.size(d.mode)):
		// Stays pending: the rest goes when this response is answered.
	default:
		d.include(res, p)
	}
}

// encoded returns what a name stands for, encoded; nil if it is bad or proves to be.
func (d *draft) encoded(subject Subject, name string, bad bool) *Resource {
	if bad {
		return nil
	}
	return d.engine.encoded(subject, name)
}

// bad deals with a name of which there is no telling what it stands for, by a
// fault of ours: who has it keeps it, and to others there is nothing.
func (d *draft) bad(name string, p pending) {
	if _, has := d.st.held[name]; !has {
		d.gone(name, p)
		return
	}
	delete(d.st.pending, name)
}

// refusedAs reports whether a name was refused as it is, so that there is no
// point in saying it again.
func (d *draft) refusedAs(name string, v Version) bool {
	r, was := d.st.refused[name]
	return was && r.version == v
}

// tooLarge reports whether so many bytes would make the response larger than
// the peer may take. A full set cannot be split, and a resource neither.
func (d *draft) tooLarge(size int) bool {
	return !d.st.full && d.size > 0 && d.size+size > d.engine.config.Budget
}

// include adds a resource to the response.
func (d *draft) include(res *Resource, p pending) {
	d.out.Resources = append(d.out.Resources, res)
	d.size += res.size(d.mode)
	d.note(res.Name, res.Version, p)
	d.st.hold(res)
	d.accompany(res.Name, p)
}

// accompany sends what has to go with a resource of the response.
func (d *draft) accompany(name string, p pending) {
	for _, with := range d.engine.config.Types[d.t].With {
		other := &d.types[with]
		if !other.asked || !other.subscribed(name) {
			continue
		}
		if _, found, _ := d.engine.find(d.world, d.view, with, name); found {
			other.want(name, pending{force: true, since: p.since, urgent: p.urgent})
		}
	}
}

// note enters a name that the response brings, with its version or, for a
// removal, with none.
func (d *draft) note(name string, v Version, p pending) {
	st := d.st
	d.brought++
	d.since = oldest(d.since, p.since)
	delete(st.pending, name)
	if st.aloft == nil {
		st.aloft = map[string]uint64{}
	}
	st.aloft[name] = d.serial
	if st.full || st.refused[name].version == v {
		delete(st.refused, name) // it takes others with it in any case, or is tried again itself
	} else {
		st.pardon(name)
	}
}

// gone deals with a name that stands for nothing.
func (d *draft) gone(name string, p pending) {
	st := d.st
	h, has := st.held[name]
	switch {
	case !has && (!p.force || d.silent(name)):
		delete(st.pending, name)
	case d.refusedAs(name, Version{}) && !p.force:
		delete(st.pending, name)
	case !d.world.Complete() && (!has || h.resumed) && !st.full:
		// It may belong to a source that has not been listed yet.
		delete(st.pending, name)
		st.unproven[name] = struct{}{}
	case has && !d.removals:
		// Stays pending: what refers to it goes first.
	case st.full:
		d.due = true
		d.remove(name, p)
	case d.mode == Delta && d.tooLarge(len(name)):
		// Stays pending, as in look.
	case d.mode == Delta:
		d.out.Removed = append(d.out.Removed, name)
		d.size += len(name)
		d.remove(name, p)
	default:
		d.void(name, p)
	}
}

// silent reports whether a subscriber that asks for a name by itself is not to
// be told that it does not exist.
func (d *draft) silent(name string) bool {
	_, named := d.st.names[name]
	return named && d.mode == Delta && slices.Contains(d.engine.config.Types[d.t].SilentTo, d.view.Kind)
}

func (d *draft) remove(name string, p pending) {
	d.note(name, Version{}, p)
	d.st.release(name)
}

// void tells a subscriber that cannot be told of a removal that a resource it
// holds, or asks for, is empty. Where that cannot be said either, nothing is.
func (d *draft) void(name string, p pending) {
	encoded, ok := d.engine.void(d.world, d.t, name)
	if !ok {
		d.vanish(name)
		return
	}
	h, has := d.st.held[name]
	same := has && !h.unknown && h.version == encoded.Version
	if (same || d.refusedAs(name, encoded.Version)) && !p.force {
		delete(d.st.pending, name)
		return
	}
	d.include(&Resource{encoded, d.engine.config.Frame(encoded)}, p)
}

// vanish deals with a name that stands for nothing any more when there is no
// way to say so: the subscriber keeps what it has.
func (d *draft) vanish(name string) {
	if _, named := d.st.names[name]; !named {
		d.st.forget(name) // there is no end of names that come and go
		return
	}
	delete(d.st.pending, name)
	d.st.pardon(name)
}

// heldBack reports whether a resource that this one refers to was not accepted
// yet: it was refused, or is on its way.
func (d *draft) heldBack(name string) bool {
	for _, need := range d.engine.config.Types[d.t].Needs {
		st := &d.types[need]
		if !st.asked || !st.subscribed(name) {
			continue
		}
		_, waits := st.pending[name]
		_, refused := st.refused[name]
		flying := st.blocks() && st.aloft[name] == st.newest().serial
		if waits || refused || flying {
			return true
		}
	}
	return false
}

// send hands the response to the stream, if there is one.
func (d *draft) send() bool {
	st := d.st
	if st.full {
		d.wholeSet()
	}
	if len(d.out.Resources) == 0 && len(d.out.Removed) == 0 && !d.due {
		return false
	}
	now := time.Now()
	st.answer, st.claim = false, nil
	d.Subscriber.serial = d.serial
	d.out.Type, d.out.Serial, d.out.Version, d.out.since = d.t, d.serial, st.sum, d.since
	st.launch(&flight{serial: d.serial, version: st.sum, brought: d.brought, since: d.since, waits: now})
	st.record.send(now, st.sum)
	d.engine.counts.sent(d.t, len(d.out.Resources), d.size)
	d.Subscriber.out <- d.out
	return true
}

// wholeSet makes the response of a full type everything the subscriber holds,
// if there is reason for one.
func (d *draft) wholeSet() {
	if len(d.out.Resources) == 0 && !d.due {
		return
	}
	d.due, d.size = true, 0
	d.out.Resources = d.out.Resources[:0]
	for _, name := range slices.Sorted(maps.Keys(d.st.held)) {
		res := d.st.held[name].res
		d.out.Resources = append(d.out.Resources, res)
		d.size += res.size(d.mode)
	}
}
