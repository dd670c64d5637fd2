package push

// memo is what a worker found names to stand for in the worlds of its turn. Most
// subscribers whom a change concerns see the same of it, and have their turns
// right after each other. It keeps few names, for to remember what only one
// subscriber looks at would cost more than to look it up. It knows nothing of
// other worlds than the current ones. The worker owns it.
type memo struct {
	step  uint64 // after which the worlds were read
	found map[lookup]finding
}

type lookup struct {
	view *sharedView
	t    Type
	name string
}

type finding struct {
	subject Subject
	res     *Resource
}

// at forgets what was found in other worlds than those of a step.
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

// resolve returns what a name stands for, and its encoded form unless it has to
// wait for something. It is bad if there is no telling, by a fault of ours.
func (d *draft) resolve(name string) (f finding, ok, bad bool) {
	at := lookup{d.interest.view, d.t, name}
	if f, ok = d.turn.memo.found[at]; ok {
		return f, true, false
	}
	e := d.subscriber.engine
	f.subject, ok, bad = e.find(d.world, d.view, d.info.row, name)
	if bad || !ok {
		return f, false, bad
	}
	if f.res = e.encoded(f.subject, name); f.res == nil {
		return f, false, true
	}
	d.turn.memo.note(at, f)
	return f, true, false
}
