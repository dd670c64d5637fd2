package pushtest

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// client asks for resources of the makers, and checks the responses.
type client struct {
	h      *history
	id     string
	who    world.Client
	sub    *push.Subscriber // nil while it is away
	types  map[world.Type]*typed
	silent bool // never answers
	rolls  bool // applies nothing of a response that it NACKs
	busy   bool // does not read for now
	doomed bool // the stream may be ended, by a fault of a requested type

	bad map[string]bool // names that the client NACKs, by type and name
	// has lists each state in which the client may have a resource that is sent in parts,
	// across all its streams.
	has map[world.Type]map[string][]world.Encoded
	// views are the client's views of each type since everything was last at rest, whether or
	// not the client asks for the type.
	views map[world.Type][]view
}

// typed is the state of a client for a type on one stream.
type typed struct {
	c     *client
	t     world.Type
	maker *maker
	row   world.Row
	spec  world.TypeSpec
	mode  world.Mode
	full  bool // each response is the whole set

	asked    int // when the type was first requested, by the clock of the history
	fence    int // when everything was last at rest, or requested
	wildcard int // since when everything is requested; 0 if it is not
	named    map[string]int
	held     map[string]*thing
	settled  map[string]world.Encoded // the last answered version, ACKed or NACKed
	applied  map[string]world.Version // version in use, unless the client NACKs it
	uses     map[string][]byte        // body in use, of an exclusive type, including all that was ACKed
	kept     map[string]bool          // names removed from a full set that the client NACKed
	denied   map[string]bool          // names for which the client was sent a removal

	claims    bool            // the first request lists the held versions
	first     bool            // the first response is awaited
	again     int             // number of reasons to be sent an unchanged full set
	repeats   map[string]int  // number of reasons to be sent an unchanged resource
	free      map[string]bool // names that may come again without limit
	anyway    bool            // any resource may come once more
	dropped   bool            // the client has dropped names
	loose     bool            // the client has dropped names lately
	owed      map[string]bool // names that the client waits for anew
	missing   map[string]int  // number of turns that a removal of the name is late
	crossed   map[string]bool // names that were dropped while a response with them was unanswered
	uncertain map[string]bool // crossed names that were requested again: the client may have an old version
	inflight  []*flight
	acked     *world.Version
}

// thing is a resource as last sent.
type thing struct {
	world.Encoded
	serial  uint64 // 0 if sent on an earlier stream
	state   state
	bad     bool // NACKed for its own sake
	overdue bool // before it was answered
	there   bool // sent on an earlier stream, and found unchanged on this one
	lapsed  bool // removed, in a protocol without a removal
}

type state int

const (
	unanswered state = iota
	acked
	nacked
	suspected // in a full set that was NACKed
)

// flight is a response that was read and not answered.
type flight struct {
	serial  uint64
	version world.Version
	at      time.Time
	changed []world.Encoded
	removed []string
}

func (c *client) String() string { return c.id }

func (s *typed) subscribed(name string) bool { return s.wildcard > 0 || s.named[name] > 0 }

// since returns when the client began to ask for a name. A name requested twice counts from
// the later request.
func (s *typed) since(name string) int { return max(s.wildcard, s.named[name]) }

// seen returns the views that responses may come from, since everything was at rest. now
// returns the newest of them.
func (s *typed) seen() []view { return s.c.views[s.t] }

func (s *typed) now() (v view) {
	if all := s.seen(); len(all) > 0 {
		return all[len(all)-1]
	}
	return v
}

// note records the client's view of a maker's newest world.
func (c *client) note(m *maker) {
	for r := range m.Rows {
		t := m.producer.Type(world.Row(r))
		c.views[t] = append(c.views[t], m.view(world.Row(r), c.who))
		c.doomed = c.doomed || c.types[t] != nil && m.curses(c.who)
	}
}

// sorted returns the types in order, so that a history can be repeated.
func (c *client) sorted() []*typed {
	list := slices.Collect(maps.Values(c.types))
	slices.SortFunc(list, func(a, b *typed) int { return int(a.t - b.t) })
	return list
}

// connect opens a stream.
func (c *client) connect() {
	c.sub = c.h.engine.Connect(push.Info{ID: c.id}, c.who)
	c.types, c.busy, c.doomed = map[world.Type]*typed{}, false, false
}

// leave ends the stream.
func (c *client) leave() {
	c.sub.Close()
	c.sub, c.types = nil, nil
}

// begin starts a type that was not requested on this stream.
func (c *client) begin(m *maker, r world.Row, mode world.Mode) *typed {
	c.h.clock++
	s := &typed{
		c: c, t: m.producer.Type(r), maker: m, row: r, spec: m.Rows[r], mode: mode,
		full: mode == world.WholeState && m.Rows[r].Whole, asked: c.h.clock, fence: c.h.clock, first: true,
		named: map[string]int{}, held: map[string]*thing{}, settled: map[string]world.Encoded{}, applied: map[string]world.Version{}, uses: map[string][]byte{}, denied: map[string]bool{}, kept: map[string]bool{},
		repeats: map[string]int{}, free: map[string]bool{}, owed: map[string]bool{}, missing: map[string]int{}, crossed: map[string]bool{}, uncertain: map[string]bool{},
	}
	c.types[s.t] = s
	c.doomed = c.doomed || m.curses(c.who)
	return s
}

// request sends a request, which must be granted.
func (c *client) request(s *typed, r session.Request) {
	r.Type, r.Mode = s.t, s.mode
	c.h.log("%v requests %s: %+v", c, s.spec.Name, r)
	if err := c.sub.Request(r); err != nil {
		c.h.violated(bounded, "client %v may not ask for a few names: %v", c, err)
	}
}

// act makes one random move.
func (c *client) act() {
	t := c.h.t
	if c.sub == nil {
		c.comeBack()
		return
	}
	switch rapid.IntRange(0, 13).Draw(t, "does") {
	case 0, 1, 2:
		c.ask()
	case 3:
		c.unask()
	case 4:
		c.busy = !c.busy
	case 5:
		c.nack()
	case 6:
		c.back(rapid.Bool().Draw(t, "keeps"))
	case 7:
		if rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
			c.leave()
		}
	case 8:
		c.readOne()
	case 9, 10:
		c.follow()
	default:
		c.turn()
	}
}

// nack changes which resources the client NACKs.
func (c *client) nack() {
	m, r := c.h.drawType()
	key := m.Rows[r].Name + " " + m.Name(c.h.t, r)
	if c.bad[key] {
		delete(c.bad, key)
	} else if len(c.bad) < 3 {
		c.bad[key] = true
	}
}

func (s *typed) nacks(name string) bool { return s.c.bad[s.spec.Name+" "+name] }

// comeBack opens a new stream after the client was away, without a request.
func (c *client) comeBack() { c.connect() }

// back ends the stream and opens another, on which the client repeats its requests. With
// keeps, the requests list the held versions; otherwise the client has none.
func (c *client) back(keeps bool) {
	before := c.sorted()
	if !keeps {
		c.has = nil
	}
	c.h.log("%v comes back, and keeps what it has: %t", c, keeps)
	c.leave()
	c.connect()
	for _, s := range rapid.Permutation(before).Draw(c.h.t, "order") {
		c.resume(s, keeps)
	}
}

func (c *client) resume(before *typed, keeps bool) {
	s := c.begin(before.maker, before.row, before.mode)
	names := slices.Sorted(maps.Keys(before.named))
	r := session.Request{Names: names, Replace: true}
	if s.mode == world.Delta {
		r = session.Request{Subscribe: names}
	}
	if before.wildcard > 0 {
		r.Wildcard, s.wildcard = session.WildcardOn, s.asked
	}
	if keeps && s.mode == world.WholeState {
		r.Claim = before.acked
		s.claims = r.Claim != nil
	}
	if keeps && s.mode == world.Delta && len(before.applied) > 0 && !s.spec.Increments {
		r.Held = maps.Clone(before.applied)
		maps.DeleteFunc(r.Held, func(name string, _ world.Version) bool { return !before.subscribed(name) })
	}
	for name, version := range r.Held {
		if body, ok := before.uses[name]; ok {
			s.uses[name] = body
		}
		s.held[name] = &thing{Encoded: world.Encoded{Name: name, Version: version}, state: acked}
		s.applied[name] = version
	}
	s.want(names, r.Held)
	if len(r.Held) > 0 {
		s.waitAnew()
	}
	s.first = s.mode == world.WholeState || s.wildcard > 0 && len(r.Held) == 0
	c.request(s, r)
}

// want records that names are requested, of which the client holds some.
func (s *typed) want(names []string, held map[string]world.Version) {
	for _, name := range names {
		s.named[name] = s.c.h.clock
		delete(s.denied, name)
		if _, has := held[name]; !has {
			s.repeats[name]++
		}
	}
	s.meet()
	s.again++
}

// readOne reads a response, and does not answer it yet.
func (c *client) readOne() bool {
	select {
	case r, open := <-c.sub.Out():
		if !open {
			c.ended()
			return true
		}
		c.receive(r)
		return true
	default:
		return false
	}
}

// readAll reads all pending responses, and reports whether the stream goes on.
func (c *client) readAll() bool {
	for c.sub != nil && c.readOne() {
		continue
	}
	return c.sub != nil
}

// ended handles the end of the stream.
func (c *client) ended() {
	if !c.sub.Failed() || !c.doomed {
		c.h.violated(contained, "the stream of client %v was ended, and nothing that it asks for is at fault", c)
	}
	c.leave()
}

// turn reads and answers all pending responses. It reports whether there was any.
func (c *client) turn() (busy bool) {
	if c.sub == nil || c.busy {
		return false
	}
	for c.sub != nil && c.readOne() {
		busy = true
	}
	if c.sub == nil || c.silent {
		return busy
	}
	for _, s := range c.sorted() {
		for len(s.inflight) > 0 {
			busy = true
			c.answer(s)
		}
	}
	return busy
}
