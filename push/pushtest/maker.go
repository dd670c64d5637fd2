package pushtest

import (
	"maps"
	"slices"
	"weak"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
)

// maker is a producer of a history: the added one, or a neighbour.
type maker struct {
	Addition
	h        *history
	producer *push.Producer
	world    World
	faulty   int // how many steps of ten change what is at fault

	published int  // worlds so far
	listed    bool // every source has been, as the next world says
	complete  bool // as a published world has said
	faults    map[place]fault
	cursed    []push.Client
	lately    []push.Client // who was cursed since everything was at rest
	revoked   map[place]bool
	stages    []weak.Pointer[stage] // all that were published
}

func newMaker(h *history, a Addition, faulty int) *maker {
	a.Rows = slices.Clone(a.Rows)
	for r := range a.Rows {
		a.Rows[r].Debounce = push.TypeSpec{}.Debounce
	}
	return &maker{
		Addition: a, h: h, producer: h.engine.Produce(a.Rows), world: a.Begin(), faulty: faulty,
		faults: map[place]fault{}, revoked: map[place]bool{},
	}
}

// publish makes a step. It lists the changes that the suite made to the world as well.
func (m *maker) publish() {
	u := m.world.Step(m.h.t)
	m.spoil(&u)
	m.put(u)
}

// put publishes an update with the faults there are.
func (m *maker) put(u push.Update) {
	s := &stage{u.World, m.listed, maps.Clone(m.faults), slices.Clone(m.cursed)}
	u.World, m.complete = s, m.listed
	for _, c := range u.Changed {
		at := place{c.Row, c.Name}
		m.revoked[at] = m.revoked[at] || c.Revoked
	}
	m.stages = append(m.stages, weak.Make(s))
	m.published++
	m.h.clock++
	m.h.log("%s publishes world %d: %+v, reviewed %v, faults %v, complete %t", m.Rows[0].Name, m.published, u.Changed, u.Reviewed, m.faults, m.complete)
	for _, c := range m.h.clients {
		c.note(m)
	}
	m.producer.Publish(u)
}

// spoil changes what is at fault in the world.
func (m *maker) spoil(u *push.Update) {
	t := m.h.t
	if rapid.IntRange(0, 9).Draw(t, "faults") >= m.faulty {
		return
	}
	r := push.Row(rapid.IntRange(0, len(m.Rows)-1).Draw(t, "fault of"))
	at := place{r, m.Name(t, r)}
	switch f := fault(rapid.IntRange(0, 2).Draw(t, "fault")); {
	case f != 0:
		m.faults[at] = f
	default:
		delete(m.faults, at)
	}
	u.Changed = append(u.Changed, push.Changed{Row: at.Row, Name: at.name})
	m.curse(u)
}

// curse has the views of one client panic, or ends that.
func (m *maker) curse(u *push.Update) {
	t := m.h.t
	if len(m.h.clients) == 0 || rapid.IntRange(0, 3).Draw(t, "curses") > 0 {
		return
	}
	if m.cursed != nil {
		m.cursed = nil
	} else {
		m.cursed = []push.Client{rapid.SampledFrom(m.h.clients).Draw(t, "cursed").who}
		m.lately = append(m.lately, m.cursed...)
	}
	u.Reviewed = []string{"*"}
}

// heal ends all faults, and has every source listed.
func (m *maker) heal() {
	m.listed = true
	u := m.world.Step(m.h.t)
	for at := range m.faults {
		u.Changed = append(u.Changed, push.Changed{Row: at.Row, Name: at.name})
	}
	m.faults, m.cursed = map[place]fault{}, nil
	m.put(u)
}

// curses reports whether a client that asks for a type of this producer may have
// its stream ended.
func (m *maker) curses(c push.Client) bool { return (&stage{cursed: m.lately}).curses(c) }

// view is what a client sees of a type in one world.
type view struct {
	world int // as its maker counts them
	names map[string]push.Encoded
	// unclear are names of which nobody can say what they stand for, or whose
	// content nobody can have, by a fault of the producer.
	unclear map[string]fault
}

func (m *maker) view(r push.Row, c push.Client) view {
	v := view{world: m.published, names: m.world.Sees(r, c), unclear: map[string]fault{}}
	for at, f := range m.faults {
		if _, there := v.names[at.name]; at.Row == r && (there || f == lostFault) {
			v.unclear[at.name] = f
		}
	}
	return v
}
