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
	urgent   bool                // a pending name may be urgent
	expand   bool                // the wildcard's names, too
	answer   bool                // the first request awaits a response, were it empty
	claim    *Version            // what the subscriber says it holds already
	guard    bool                // it is sent nothing, lest that takes something from it
	unproven map[string]struct{} // not found while some source was not listed yet

	refused map[string]refusal // names whose newest response was refused
	again   bool               // some of them are to be tried again

	// flights are the responses that may still be answered, oldest first.
	flights []*flight
	// aloft are the names that are new in them, by the serial of the newest
	// response that brought each.
	aloft  map[string]uint64
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
	sent    bool      // on this stream
	res     *Resource // only for full types
}

// pending is why a name is to be looked at.
type pending struct {
	// force sends the resource even if the subscriber has it: it asked again,
	// or something else demands it.
	force  bool
	urgent bool      // as in [Changed]
	since  time.Time // commit of the oldest change not sent yet; zero if unknown
}

// and joins two reasons.
func (p pending) and(o pending) pending {
	return pending{p.force || o.force, p.urgent || o.urgent, oldest(p.since, o.since)}
}

func newState(full bool) state {
	return state{
		full:     full,
		names:    map[string]struct{}{},
		held:     map[string]held{},
		pending:  map[string]pending{},
		unproven: map[string]struct{}{},
		refused:  map[string]refusal{},
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
func (st *state) rests() bool { return len(st.pending) == 0 && !st.expand && !st.answer && !st.again }

// want puts a name on the list of those to look at.
func (st *state) want(name string, p pending) {
	st.pending[name] = st.pending[name].and(p)
	st.urgent = st.urgent || p.urgent
	st.crowded = st.crowded || len(st.pending) > few
}

// order lists the pending names, those that are urgent first.
func (st *state) order() []string {
	first, rest := []string(nil), make([]string, 0, len(st.pending))
	for name, p := range st.pending {
		if p.urgent {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	slices.Sort(first)
	slices.Sort(rest)
	return append(first, rest...)
}

// thin forgets names that changed while the wildcard's response goes
// unanswered, if they are more than the subscriber holds: what is left of those
// that came and went will be found by asking the world.
func (st *state) thin() {
	if !st.wildcard || !st.blocks() || len(st.pending) <= len(st.held)+len(st.names)+tooMany {
		return
	}
	maps.DeleteFunc(st.pending, func(name string, p pending) bool {
		_, has := st.held[name]
		_, named := st.names[name]
		return !has && !named && !p.force
	})
	st.expand = true
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
	h := held{version: res.Version, sent: true}
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
	st.held[name] = held{unknown: true, sent: true}
	st.sum = st.sum.plus(memberHash(name, Version{}))
}

// forget drops what is known of a name that is no longer subscribed: asked for
// again, it is sent again. What was refused with it is tried without it.
func (st *state) forget(name string) {
	st.release(name)
	delete(st.pending, name)
	delete(st.unproven, name)
	delete(st.aloft, name)
	st.pardon(name)
}

func (st *state) forgetUnsubscribed() {
	known := slices.Concat(slices.Collect(maps.Keys(st.held)), slices.Collect(maps.Keys(st.pending)), slices.Collect(maps.Keys(st.aloft)))
	for _, name := range known {
		if !st.subscribed(name) {
			st.forget(name)
		}
	}
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
