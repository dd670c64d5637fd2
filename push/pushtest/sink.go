package pushtest

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// sink takes one type as a full set, and chooses with each answer whether it takes
// increments next, as a sink of MCP v1 does. It applies nothing of a response that it
// NACKs. Its final resources are checked. The responses on the way are checked by [client],
// which keeps its mode.
type sink struct {
	h     *history
	id    string
	who   world.Client
	maker *maker
	row   world.Row
	t     world.Type
	habit habit
	bad   map[string]bool // names that the sink always NACKs

	sub     *push.Subscriber // nil while the sink is away
	agreed  bool             // the sink takes increments, as of its last answer
	waits   bool             // the first response is awaited
	holds   map[string]world.Encoded
	sent    map[string]bool // names sent on this stream
	version world.Version   // of all held resources
}

// habit is how a sink decides whether it takes increments.
type habit int

const (
	never habit = iota
	always
	pilots // always, but not with a NACK
	fickle // may change with each ACK
)

// joinSink adds a sink for a type, if some type goes as a full set.
func (h *history) joinSink() {
	t := h.t
	var of []*sink
	for _, m := range h.makers {
		for r, spec := range m.Rows {
			if spec.Whole {
				of = append(of, &sink{maker: m, row: world.Row(r), t: m.producer.Type(world.Row(r))})
			}
		}
	}
	s := rapid.SampledFrom(of).Draw(t, "of")
	s.h, s.id, s.who = h, fmt.Sprint("sink-", len(h.sinks)), h.makers[0].Client(t)
	s.habit, s.bad, s.holds = habit(rapid.IntRange(int(never), int(fickle)).Draw(t, "habit")), map[string]bool{}, map[string]world.Encoded{}
	for range rapid.IntRange(0, 2).Draw(t, "NACKs") {
		s.bad[s.maker.Name(t, s.row)] = true
	}
	h.sinks = append(h.sinks, s)
	s.connect()
}

// connect opens a stream and asks for everything. A sink that takes increments lists the
// versions that it holds.
func (s *sink) connect() {
	s.sub = s.h.engine.Connect(push.Info{ID: s.id}, s.who)
	s.sent, s.waits, s.agreed = map[string]bool{}, true, s.agrees(false)
	held := map[string]world.Version{}
	for name, e := range s.holds {
		held[name] = e.Version
	}
	r := session.Request{Wildcard: session.WildcardOn}
	if s.agreed && len(held) > 0 {
		r.Mode, r.Held, r.Confirm = world.Delta, held, true
	} else {
		r.Mode, r.Claim = world.WholeState, session.Unknown()
	}
	s.request(r)
}

// agrees reports whether the sink takes increments next, given whether it NACKs.
func (s *sink) agrees(nacks bool) bool {
	if s.habit == fickle && nacks {
		return s.agreed // otherwise two modes could alternate for ever, each as requested
	}
	return s.habit == always || s.habit == pilots && !nacks || s.habit == fickle && rapid.Bool().Draw(s.h.t, "increments")
}

func (s *sink) request(r session.Request) {
	r.Type, r.EachTime, r.Either = s.t, true, s.agreed
	s.h.log("%s requests %s: %+v", s.id, s.maker.Rows[s.row].Name, r)
	if err := s.sub.Request(r); err != nil {
		s.violated(bounded, "it may not ask for a few names: %v", err)
	}
}

func (s *sink) violated(l law, format string, args ...any) {
	s.h.violated(l, s.id+", "+s.maker.Rows[s.row].Name+": "+format, args...)
}

// act makes one random move.
func (s *sink) act() {
	switch rapid.IntRange(0, 5).Draw(s.h.t, "does") {
	case 0:
		if s.sub != nil {
			s.leave()
		} else if rapid.Bool().Draw(s.h.t, "forgets") {
			clear(s.holds)
		}
	case 1:
		if s.sub == nil {
			s.connect()
		}
	default:
		s.turn()
	}
}

func (s *sink) leave() {
	s.h.log("%s leaves", s.id)
	s.sub.Close()
	s.sub = nil
}

// turn reads and answers all pending responses, and reports whether there was any.
func (s *sink) turn() (busy bool) {
	for range restless {
		if s.sub == nil {
			break
		}
		select {
		case r, open := <-s.sub.Out():
			if busy = true; open {
				s.receive(r)
				continue
			}
			if !s.sub.Failed() || !s.maker.curses(s.who) {
				s.violated(contained, "its stream was ended, and nothing that it asks for is at fault")
			}
			s.sub = nil
		default:
			return busy
		}
	}
	return busy
}

func (s *sink) receive(r *session.Response) {
	s.h.log("%s receives, in mode %d, %s", s.id, r.Mode, responseText(r))
	switch {
	case s.maker.published == 0:
		s.violated(primed, "it was sent something before its producer had published")
	case r.Type != s.t || r.Mode == world.Delta && !s.agreed:
		s.violated(resent, "it was sent type %d in mode %d, for which it did not ask", r.Type, r.Mode)
	case r.Mode == world.Delta && len(r.Resources)+len(r.Removed) == 0 && !s.waits:
		s.violated(resent, "an increment of nothing")
	case s.h.largest > 0 && sizeOf(r) > s.h.largest && (r.Mode == world.WholeState || len(r.Resources) == 1):
		s.violated(bounded, "a message of %d bytes, where %d are the most", sizeOf(r), s.h.largest)
	}
	s.sub.Sent(r)
	s.waits = false
	after, nacks := map[string]world.Encoded{}, false
	if r.Mode == world.Delta {
		after = maps.Clone(s.holds)
	}
	for _, res := range r.Resources {
		after[res.Name], s.sent[res.Name] = res.Joined(), true
		nacks = nacks || s.bad[res.Name]
	}
	for _, name := range r.Removed {
		delete(after, name)
	}
	kind := session.NACK
	if !nacks {
		kind, s.holds, s.version = session.ACK, after, r.Version
	}
	answer := session.Request{Answer: session.Answer{Kind: kind, Serial: r.Serial, Reason: "bad"}}
	if s.agreed = s.agrees(nacks); s.agreed {
		answer.Mode = world.Delta
	} else {
		answer.Mode = world.WholeState
	}
	s.request(answer)
}

func sizeOf(r *session.Response) (bytes int) {
	for _, res := range r.Resources {
		bytes += res.Size()
	}
	return bytes
}

// check checks a sink's resources once everything is at rest.
func (s *sink) check() {
	if s.sub == nil || s.maker.published == 0 {
		return
	}
	v := s.maker.view(s.row, s.who)
	if !s.agreed && s.mayWait(v) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v.names)) {
		if is, want := s.holds[name], v.names[name]; is.Version != want.Version && !s.bad[name] && v.unclear[name] == 0 && !s.tooLarge(len(want.Body)) {
			s.violated(lost, "%s is %q and should be %q", name, is.Body, want.Body)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.holds)) {
		if _, there := v.names[name]; !there && v.unclear[name] == 0 && (s.maker.complete || s.sent[name]) {
			s.violated(lost, "%s is gone and was not removed", name)
		}
	}
	s.checkVersion(v)
}

// mayWait reports whether a full set may be withheld from the sink. The set may lack a
// resource that the sink holds, contain one that the sink NACKs, or be too large.
func (s *sink) mayWait(v view) bool {
	size := 0
	for name, e := range v.names {
		if size += len(e.Body); s.bad[name] {
			return true
		}
	}
	return !s.maker.complete || len(v.unclear) > 0 || s.tooLarge(size)
}

func (s *sink) tooLarge(size int) bool { return s.h.largest > 0 && size+slack > s.h.largest }

// slack bounds the bytes of a message beside the ones counted here.
const slack = 64

// checkVersion checks the version of the set, if the sink has all resources.
func (s *sink) checkVersion(v view) {
	if len(s.bad)+len(v.unclear) > 0 || len(s.holds) != len(v.names) || s.version == (world.Version{}) {
		return
	}
	sum := world.VersionOfSet(func(yield func(string, world.Version) bool) {
		for name, e := range s.holds {
			if !yield(name, e.Version) {
				return
			}
		}
	})
	if s.version != sum {
		s.violated(lost, "the version of the whole is %s, and of what it holds %s", s.version, sum)
	}
}
