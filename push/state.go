package push

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// state is what the engine knows of one type of one subscriber.
type state struct {
	full bool // every response is the whole set

	asked    bool // the type was requested on this stream
	wildcard bool
	names    map[string]struct{} // subscribed by name
	list     []string            // the same as they were last listed in full; nil if they were not

	// held is what the subscriber has once it has taken in all it was sent.
	held map[string]held
	sum  Version // of held

	pending  map[string]pending  // names to look at
	crowded  bool                // pending once held many
	expand   bool                // the wildcard's names, too
	answer   bool                // the first request awaits a response, were it empty
	claim    *Version            // what the subscriber says it holds already
	guard    bool                // it is sent nothing, lest that takes something from it
	unproven map[string]struct{} // not found while some source was not listed yet
	refused  map[string]*refusal

	flight *flight   // the newest
	late   []*flight // those before it that may still be answered, oldest first
	record history
}

// held is one resource a subscriber has.
type held struct {
	version Version
	// unknown is set, and there is no version, when the subscriber refused the
	// response it came in: it may or may not have taken it.
	unknown bool
	// resumed is set while the subscriber's own word is all we have for it.
	resumed bool
	res     *Resource // only for full types
}

// pending is why a name is to be looked at.
type pending struct {
	// force sends the resource even if the subscriber has it: it asked again,
	// or something else demands it.
	force bool
	since time.Time // commit of the oldest change not sent yet; zero if unknown
}

// refusal is a refused response, or what is left of one. Nobody knows which of
// its resources was at fault, nor what the subscriber made of the others: once
// one of them changed, the others are tried again.
type refusal struct {
	versions map[string]Version // zero for a removal
}

// flight is a response that was not answered.
type flight struct {
	serial  uint64
	version Version               // of all that the subscriber holds with it
	changed map[string]Version    // what it brought that is new; zero for a removal
	tried   map[*refusal]struct{} // of which it brought a part again
	since   time.Time             // commit of its oldest change
	sentAt  time.Time             // zero until the transport has taken it
	overdue bool
	timer   *time.Timer
}

func (f *flight) stop() {
	if f != nil && f.timer != nil {
		f.timer.Stop()
	}
}

// blocks reports whether the next response of the type has to wait.
func (f *flight) blocks() bool { return f != nil && !f.overdue }

func newState(full bool) state {
	return state{
		full:     full,
		names:    map[string]struct{}{},
		held:     map[string]held{},
		pending:  map[string]pending{},
		unproven: map[string]struct{}{},
		refused:  map[string]*refusal{},
	}
}

// subscribed reports whether the subscriber wants the name.
func (st *state) subscribed(name string) bool {
	if st.wildcard {
		return true
	}
	_, ok := st.names[name]
	return ok
}

// rests reports whether there is nothing to send and nothing to look at.
func (st *state) rests() bool { return len(st.pending) == 0 && !st.expand && !st.answer }

// want puts a name on the list of those to look at.
func (st *state) want(name string, force bool, since time.Time) {
	p, ok := st.pending[name]
	if !ok {
		p.since = since
	} else {
		p.since = oldest(p.since, since)
	}
	p.force = p.force || force
	st.pending[name] = p
	st.crowded = st.crowded || len(st.pending) > few
}

// few names may be pending at all times; room for more is given back.
const few = 32

// relieve gives back the room that a burst took once it is over. A map never
// shrinks, and to walk an empty one takes as long as to walk a full one: after
// it had been sent everything, a subscriber would pay for that ever after.
func (st *state) relieve() {
	if st.crowded && len(st.pending) == 0 {
		st.pending, st.crowded = map[string]pending{}, false
	}
}

// hold notes that the subscriber has a resource.
func (st *state) hold(res *Resource) {
	st.release(res.Name)
	h := held{version: res.Version}
	if st.full {
		h.res = res
	}
	st.held[res.Name] = h
	st.sum = st.sum.plus(memberHash(res.Name, res.Version))
}

// release notes that the subscriber has no such resource.
func (st *state) release(name string) {
	if h, ok := st.held[name]; ok {
		st.sum = st.sum.minus(memberHash(name, h.version))
		delete(st.held, name)
	}
}

// doubt notes that the subscriber may have another version than it was sent.
func (st *state) doubt(name string) {
	st.release(name)
	st.held[name] = held{unknown: true}
	st.sum = st.sum.plus(memberHash(name, Version{}))
}

// retry tries what is left of a refused response again, half of it at first:
// half of the rest follows with each answer, so that a resource at fault takes
// ever fewer others with it. Full sets are sent as one in any case.
func (st *state) retry(group *refusal) {
	var left []string
	for name, by := range st.refused {
		if (by == group || st.full) && st.subscribed(name) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	for _, name := range left[:(len(left)+1)/2] {
		st.want(name, true, time.Time{})
	}
}

// maxLate bounds the responses that are remembered although their time is over.
const maxLate = 8

// launch notes that a response is on its way. The one before, if it was not
// answered, may still be.
func (st *state) launch(f *flight) {
	if st.flight != nil {
		st.flight.stop()
		st.late = append(st.late, st.flight)
	}
	st.flight = f
	if len(st.late) > maxLate { // the two oldest become one
		maps.Copy(st.late[0].changed, st.late[1].changed)
		st.late[1].changed = st.late[0].changed
		st.late[1].outlive(st.late[0])
		st.late = slices.Delete(st.late, 0, 1)
	}
}

// land returns the response that an answer is for, which is then no longer
// awaited, nor are those before it; nil if there is none.
func (st *state) land(serial uint64) *flight {
	inAir := st.late
	if st.flight != nil {
		inAir = append(slices.Clone(inAir), st.flight)
	}
	at := slices.IndexFunc(inAir, func(f *flight) bool { return f.serial == serial })
	if at < 0 {
		return nil
	}
	f := inAir[at]
	f.outlive(inAir[:at]...)
	if f == st.flight {
		f.stop()
		st.flight, st.late = nil, nil
	} else {
		st.late = slices.Delete(st.late, 0, at+1)
	}
	return f
}

// outlive takes over what earlier flights would have brought about, which will
// not be answered.
func (f *flight) outlive(earlier ...*flight) {
	for _, e := range earlier {
		maps.Copy(f.tried, e.tried)
	}
}

// overtaken reports whether a resource is in a response that is still on its
// way, so that an earlier one says nothing about it.
func (st *state) overtaken(name string) bool {
	if st.flight == nil {
		return false
	}
	_, newest := st.flight.changed[name]
	return newest || slices.ContainsFunc(st.late, func(f *flight) bool { _, ok := f.changed[name]; return ok })
}

// memberHash is what a resource adds to the version of the set it is in.
// It is taken of a buffer on the stack, for that is done twice for every
// resource of every response.
func memberHash(name string, v Version) Version {
	var buffer [256]byte
	b := append(binary.LittleEndian.AppendUint64(buffer[:0], uint64(len(name))), name...)
	b = append(binary.LittleEndian.AppendUint64(b, uint64(len(v))), v[:]...)
	sum := sha256.Sum256(b)
	return Version(sum[:len(v)])
}
