package pushtest

import (
	"maps"
	"slices"
	"weak"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// maker is a producer of a history: the added one, or a neighbour.
type maker struct {
	Addition
	h        *history
	producer *push.Producer
	world    World
	faulty   int // number of steps in ten that change the faults

	published int  // worlds so far
	listed    bool // every source was listed, as of the next world
	complete  bool // complete, as of a published world
	faults    map[place]fault
	cursed    []world.Client
	lately    []world.Client // clients cursed since everything was at rest
	revoked   map[place]bool
	stages    []weak.Pointer[stage] // all published stages
}

func newMaker(h *history, a Addition, faulty int) *maker {
	a.Rows = slices.Clone(a.Rows)
	for r := range a.Rows {
		a.Rows[r].Debounce = world.TypeSpec{}.Debounce
	}
	return &maker{
		Addition: a, h: h, producer: h.engine.Produce(a.Rows), world: a.Begin(), faulty: faulty,
		faults: map[place]fault{}, revoked: map[place]bool{},
	}
}

// publish makes a step. It also lists the changes that the suite made to the world.
func (m *maker) publish() {
	u := m.world.Step(m.h.t)
	m.spoil(&u)
	m.put(u)
}

// put publishes an update with the current faults.
func (m *maker) put(u world.Update) {
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

// spoil changes the faults of the world.
func (m *maker) spoil(u *world.Update) {
	t := m.h.t
	if rapid.IntRange(0, 9).Draw(t, "faults") >= m.faulty {
		return
	}
	r := world.Row(rapid.IntRange(0, len(m.Rows)-1).Draw(t, "fault of"))
	at := place{r, m.Name(t, r)}
	switch f := fault(rapid.IntRange(0, 2).Draw(t, "fault")); {
	case f != 0:
		m.faults[at] = f
	default:
		delete(m.faults, at)
	}
	u.Changed = append(u.Changed, world.Changed{Row: at.Row, Name: at.name})
	m.curse(u)
}

// curse makes the views of one client panic, or ends that.
func (m *maker) curse(u *world.Update) {
	t := m.h.t
	if len(m.h.clients) == 0 || rapid.IntRange(0, 3).Draw(t, "curses") > 0 {
		return
	}
	if m.cursed != nil {
		m.cursed = nil
	} else {
		m.cursed = []world.Client{rapid.SampledFrom(m.h.clients).Draw(t, "cursed").who}
		m.lately = append(m.lately, m.cursed...)
	}
	u.Reviewed = []string{"*"}
}

// heal ends all faults, and marks every source as listed.
func (m *maker) heal() {
	m.listed = true
	u := m.world.Step(m.h.t)
	for at := range m.faults {
		u.Changed = append(u.Changed, world.Changed{Row: at.Row, Name: at.name})
	}
	m.faults, m.cursed = map[place]fault{}, nil
	m.put(u)
}

// curses reports whether the stream of a client that asks for a type of this producer may
// be ended.
func (m *maker) curses(c world.Client) bool { return (&stage{cursed: m.lately}).curses(c) }

// view is a client's view of a type in one world.
type view struct {
	world int // by its maker's count
	names map[string]world.Encoded
	// unclear are the names with a fault of the producer: the look-up of the name or its
	// content panics.
	unclear map[string]fault
}

func (m *maker) view(r world.Row, c world.Client) view {
	v := view{world: m.published, names: m.world.Sees(r, c), unclear: map[string]fault{}}
	for at, f := range m.faults {
		if _, there := v.names[at.name]; at.Row == r && (there || f == lostFault) {
			v.unclear[at.name] = f
		}
	}
	return v
}
