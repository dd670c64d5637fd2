package push

import "time"

// state is what the engine knows of one type of one subscriber.
type state struct {
	full bool // every response is the whole set

	asked    bool // the type was requested on this stream
	wildcard bool
	names    map[string]struct{} // subscribed by name

	// held is what the subscriber has once it has taken in all it was sent.
	held map[string]held
	sum  Version // of held

	pending  map[string]pending  // names to look at
	expand   bool                // the wildcard's names, too
	answer   bool                // the first request awaits a response, were it empty
	claim    *Version            // what the subscriber says it holds already
	unproven map[string]struct{} // not found while some source was not listed yet
	refused  map[string]*refusal

	flight *flight
	record history
}

// held is one resource a subscriber has.
type held struct {
	version Version
	// unknown is set when the subscriber refused the response it came in: it
	// may or may not have taken it.
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

// refusal is a refused response. Its resources are sent again together once
// one of them changed: what the subscriber made of the rest is unknown.
type refusal struct {
	versions map[string]Version // zero for a removal
}

// flight is the newest response that was not answered.
type flight struct {
	serial  uint64
	changed map[string]Version // what it brought that is new; zero for a removal
	since   time.Time          // commit of its oldest change
	sentAt  time.Time          // zero until the transport has taken it
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
	h := st.held[name]
	if _, ok := st.held[name]; !ok {
		st.sum = st.sum.plus(memberHash(name, Version{}))
	}
	h.unknown = true
	st.held[name] = h
}

// memberHash is what a resource adds to the version of the set it is in.
func memberHash(name string, v Version) Version { return VersionOf([]byte(name), v[:]) }
