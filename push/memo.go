package push

// memo is what a worker found names to stand for in the worlds of its turn. Most
// subscribers that a change concerns have the same view of it, and have their turns
// right after each other. The memo keeps few names: to remember what only one
// subscriber looks at would cost more than to look it up. It holds findings of the
// current worlds alone. The worker owns it.
type memo struct {
	step  uint64 // after which the worlds were read
	found map[lookup]finding
}

type lookup struct {
	view *sharedView
	t    Type
	name string
	from Version // that the subscriber holds, of a type with increments
}

type finding struct {
	subject Subject
	res     *Resource
}

// at forgets the findings of all worlds but those of a step.
func (m *memo) at(step uint64) {
	if m.step != step {
		m.step = step
		clear(m.found)
	}
}

// rest forgets everything until the next turn: a worker that waits for one keeps
// no world in memory, nor what was found there.
func (t *turn) rest() {
	clear(t.worlds)
	clear(t.memo.found)
}

// note keeps what a name stands for.
func (m *memo) note(l lookup, f finding) {
	if m.found == nil {
		m.found = map[lookup]finding{}
	}
	if len(m.found) < few {
		m.found[l] = f
	}
}

// resolve returns what a name stands for, with its encoded form for a subscriber that
// holds some revision. It is bad if neither can be found out, by a fault of ours.
func (d *draft) resolve(name string, from Version) (f finding, ok, bad bool) {
	at := lookup{d.interest.view, d.t, name, from}
	if f, ok = d.turn.memo.found[at]; ok {
		return f, true, false
	}
	e := d.subscriber.engine
	f.subject, ok, bad = e.find(d.world, d.view, d.info.row, name)
	if bad || !ok {
		return f, false, bad
	}
	if f.res = e.encodedSince(f.subject, name, from); f.res == nil {
		return f, false, true
	}
	d.turn.memo.note(at, f)
	return f, true, false
}
