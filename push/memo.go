package push

// memo is a worker's cache of resolved names in the worlds of its turn. Most subscribers
// that a change affects have the same view, and their turns directly follow each other. The
// cache keeps few names: to cache a name of a single subscriber would cost more than the
// look-up. It holds results of the current worlds alone. The worker owns it.
type memo struct {
	step  uint64 // the step after which the worlds were read
	found map[lookup]finding
}

type lookup struct {
	view *sharedView
	t    Type
	name string
	from Version // version that the subscriber holds, for a type with increments
}

type finding struct {
	subject Subject
	res     *Resource
}

// at drops the results of all steps but one.
func (m *memo) at(step uint64) {
	if m.step != step {
		m.step = step
		clear(m.found)
	}
}

// rest drops the worlds and the cache until the next turn: an idle worker keeps no world in
// memory.
func (t *turn) rest() {
	clear(t.worlds)
	clear(t.memo.found)
}

// note caches the result for a name.
func (m *memo) note(l lookup, f finding) {
	if m.found == nil {
		m.found = map[lookup]finding{}
	}
	if len(m.found) < few {
		m.found[l] = f
	}
}

// resolve returns the subject of a name, with its encoded form for a subscriber that holds
// some revision. bad reports that the look-up or the encoding panicked.
func (d *draft) resolve(name string, from Version) (f finding, ok, bad bool) {
	at := lookup{d.interest.view, d.t, name, from}
	if f, ok = d.turn.memo.found[at]; ok {
		return f, true, false
	}
	e := d.subscriber.engine
	f.subject, ok, bad = e.reader.Find(d.world, d.view, d.info.Row, name)
	if bad || !ok {
		return f, false, bad
	}
	if f.res = e.reader.EncodedSince(f.subject, name, from); f.res == nil {
		return f, false, true
	}
	d.turn.memo.note(at, f)
	return f, true, false
}
