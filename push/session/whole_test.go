package session

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// wholeRig is a stream of full sets, of which a turn considers one name in each of its two
// rounds. It has been sent the first set, and has ACKed it.
func wholeRig(t *testing.T, first world.World, want ...string) *rig {
	t.Helper()
	types := (&world.Types{}).With(nil,
		world.Info{TypeSpec: world.TypeSpec{Name: "text", Whole: true, Brings: []string{"part"}}},
		world.Info{TypeSpec: world.TypeSpec{Name: "part", Awaited: true}},
		world.Info{TypeSpec: world.TypeSpec{Name: "user", Needs: []string{"text"}}})
	reader := world.NewReader(func(world.Encoded) (heads [world.Modes][]byte) { return heads }, nil)
	g := &rig{T: t, stream: NewStream(Limits{Budget: 1 << 20, Turn: 1}, "", reader.Seed())}
	g.look = Look{Reader: reader, Types: types, Sources: make([]Source, 1), Marked: make([][world.Modes]uint64, 3)}
	g.of = g.stream.Begin(types, 0, world.WholeState, time.Time{})
	g.of.SetView(&world.SharedView{})
	g.of.SetWildcard(WildcardOn, false)
	g.of.Begun(&Request{Wildcard: WildcardOn})
	g.step(first, nil)
	g.answer(g.step(first, nil, want...), ACK)
	return g
}

// begin changes a name in a set that is not complete after the turn: b, c and d are still to
// be considered, two of them in later turns.
func (g *rig) begin(w world.World) {
	g.Helper()
	g.of.Mark(map[string]Pending{"a": {Urgent: true}, "b": {}, "c": {}, "d": {}})
	g.step(w, nil)
}

// again considers the changed name again, and the rest in the turn after.
func (g *rig) again(w world.World, want ...string) *Response {
	g.Helper()
	g.of.Mark(map[string]Pending{"a": {Urgent: true}})
	g.step(w, nil)
	return g.step(w, nil, want...)
}

var (
	three = content{"b": "1", "c": "1", "d": "1"}
	four  = content{"a": "1", "b": "1", "c": "1", "d": "1"}
	other = content{"a": "2", "b": "1", "c": "1", "d": "1"}
)

// A full set takes several turns, and what has changed back by the last one is no reason to
// send it.
func TestSetWithoutDifferenceIsNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last, between content
		sent          []string
	}{
		"changed, and changed back": {four, other, []string{"a=1", "b=1", "c=1", "d=1"}},
		"went, and came back":       {four, three, []string{"a=1", "b=1", "c=1", "d=1"}},
		"came, and went":            {three, four, []string{"b=1", "c=1", "d=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := wholeRig(t, c.last, c.sent...)
			g.begin(c.between)
			g.again(c.last)
			if n := g.of.Counts(); n.Pending+n.Removed+n.InFlight > 0 || g.of.open.serial != 0 {
				t.Errorf("something is left of the set: %+v", n)
			}
			g.of.Mark(map[string]Pending{"a": {}})
			last := content{"a": "3", "b": "1", "c": "1", "d": "1"}
			g.step(last, nil, "a=3", "b=1", "c=1", "d=1")
		})
	}
}

// The other names of such a set are sent.
func TestSetIsSentForOtherDifferences(t *testing.T) {
	t.Parallel()
	g := wholeRig(t, four, "a=1", "b=1", "c=1", "d=1")
	g.begin(content{"a": "2", "b": "2", "c": "1", "d": "1"})
	r := g.again(content{"a": "1", "b": "2", "c": "1", "d": "1"}, "a=1", "b=2", "c=1", "d=1")
	if n := g.of.newest().brought; n != 1 {
		t.Errorf("%d names count as new in the set", n)
	}
	g.answer(r, NACK)
	if n := g.of.Counts().NACKed; n != 1 {
		t.Errorf("%d resources count as NACKed, want the changed one", n)
	}
}

// A set without a difference is sent if the client asked for one of its names.
func TestSetIsSentIfItIsAskedFor(t *testing.T) {
	t.Parallel()
	g := wholeRig(t, four, "a=1", "b=1", "c=1", "d=1")
	g.of.Subscribe([]string{"a"}, []string{"a"}, false)
	g.begin(other)
	g.again(four, "a=1", "b=1", "c=1", "d=1")
}

// A NACKed name that changes and changes back has the set sent again: the other content was
// a reason to try it.
func TestNACKedSetIsTriedAgain(t *testing.T) {
	t.Parallel()
	g := wholeRig(t, four, "a=1", "b=1", "c=1", "d=1")
	g.of.Mark(map[string]Pending{"a": {}})
	g.answer(g.step(other, nil, "a=2", "b=1", "c=1", "d=1"), NACK)
	g.begin(four)
	g.again(other, "a=2", "b=1", "c=1", "d=1")
}

// A NACK that comes late, for a response that is overdue, has the set sent as well.
func TestLateNACKHasTheSetSent(t *testing.T) {
	t.Parallel()
	g := wholeRig(t, four, "a=1", "b=1", "c=1", "d=1")
	g.of.Mark(map[string]Pending{"a": {}})
	late := g.step(other, nil, "a=2", "b=1", "c=1", "d=1")
	g.of.Sent(late.Serial, time.Unix(1, 0))
	if _, gaveUp := g.of.GiveUp(time.Second, time.Unix(2, 0)); !gaveUp {
		t.Fatal("the response is not overdue")
	}
	g.begin(four)
	g.answer(late, NACK)
	g.again(other, "a=2", "b=1", "c=1", "d=1")
}

// A name that the client drops is no reason to send the set that changes it.
func TestDroppedNameIsNoReasonForASet(t *testing.T) {
	t.Parallel()
	g := wholeRig(t, four, "a=1", "b=1", "c=1", "d=1")
	names := []string{"b", "c", "d"}
	g.of.Subscribe(names, names, true)
	g.begin(other)
	g.of.SetWildcard(WildcardOff, false)
	g.step(other, nil)
	g.step(other, nil)
}

// A NACKed name that the client drops while a later set is unanswered is a reason for
// another one only if the client NACKs that, too.
func TestDroppedNameAwaitsTheAnswerToTheSet(t *testing.T) {
	t.Parallel()
	for kind, next := range map[AnswerKind][]string{ACK: nil, NACK: {"b=2", "c=bad"}} {
		g := wholeRig(t, four, "a=1", "b=1", "c=1", "d=1")
		g.stream.limits.Turn = 100
		g.of.Subscribe([]string{"b", "c", "d"}, []string{"b", "c", "d"}, true)
		g.of.SetWildcard(WildcardOff, false)
		bad := content{"b": "bad", "c": "bad", "d": "bad"}
		g.answer(g.step(bad, []string{"b", "c", "d"}, "b=bad", "c=bad", "d=bad"), NACK)
		better := content{"b": "2", "c": "bad", "d": "bad"}
		later := g.step(better, []string{"b"}, "b=2", "c=bad", "d=bad")
		g.of.Unsubscribe([]string{"d"})
		g.answer(later, kind)
		g.step(better, nil, next...)
	}
}

// linked is content of which each resource brings the resource of the same name.
type linked struct{ content }

func (c linked) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	subject, ok := c.content.Find(v, r, name)
	return link{subject}, ok
}

type link struct{ world.Subject }

func (l link) Refers(string) iter.Seq[string] { return slices.Values([]string{l.Encode().Name}) }

// A name that has changed back brings nothing: it is not new in the set.
func TestNameThatChangedBackBringsNothing(t *testing.T) {
	t.Parallel()
	w := func(a, b string) world.World { return linked{content{"a": a, "b": b, "c": "1", "d": "1"}} }
	g := wholeRig(t, w("1", "1"), "a=1", "b=1", "c=1", "d=1")
	parts := g.stream.Begin(g.look.Types, 1, world.Delta, time.Time{})
	parts.SetView(&world.SharedView{})
	parts.Subscribe([]string{"a", "b"}, []string{"a", "b"}, true)
	g.stream.limits.Turn = 2
	first := g.step(w("1", "1"), nil, "a=1", "b=1")
	g.stream.limits.Turn = 1
	g.stream.Request(parts, &Request{Answer: Answer{Kind: ACK, Serial: first.Serial}}, time.Time{})
	g.begin(w("2", "2"))
	g.again(w("1", "2"), "a=1", "b=2", "b=2", "c=1", "d=1")
}

// A resource that waits for the answer to a set is sent once that set is not sent.
func TestNothingWaitsForASetThatIsNotSent(t *testing.T) {
	t.Parallel()
	w := func(a string) world.World { return linked{content{"a": a, "b": "1", "c": "1", "d": "1"}} }
	g := wholeRig(t, w("1"), "a=1", "b=1", "c=1", "d=1")
	users := g.stream.Begin(g.look.Types, 2, world.Delta, time.Time{})
	users.SetView(&world.SharedView{})
	users.Subscribe([]string{"a"}, []string{"a"}, true)
	g.begin(w("2"))
	g.of.Mark(map[string]Pending{"a": {Urgent: true}})
	g.step(w("1"), nil, "a=1")
	g.step(w("1"), nil)
}

// A first set that is too large for a message comes in increments, with all that the client
// names, or with everything. They are composed in the next turn, from the worlds of that.
func TestFirstSetThatIsTooLargeComesInIncrements(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Request{
		"names":    {Subscribe: []string{"a", "b", "c", "d"}, Either: true},
		"wildcard": {Wildcard: WildcardOn, Either: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := (&world.Types{}).With(nil, world.Info{TypeSpec: world.TypeSpec{Name: "text", Whole: true}})
			reader := world.NewReader(func(world.Encoded) (heads [world.Modes][]byte) { return heads }, nil)
			g := &rig{T: t, stream: NewStream(Limits{Budget: 1 << 20, Turn: 100, Largest: 3}, "", reader.Seed())}
			g.look = Look{Reader: reader, Types: types, Sources: make([]Source, 1), Marked: make([][world.Modes]uint64, 1)}
			g.of = g.stream.Begin(types, 0, world.WholeState, time.Time{})
			g.of.SetView(&world.SharedView{})
			g.of.Subscribe(r.Subscribe, r.Subscribe, true)
			g.of.SetWildcard(r.Wildcard, false)
			g.stream.Request(g.of, r, time.Time{})
			g.of.Begun(r)
			g.step(other, nil)
			g.step(four, nil, "a=1", "b=1", "c=1", "d=1")
		})
	}
}

// A removal that was NACKed in an increment stays due when the client changes to full sets
// and back: only an ACK tells that it is gone.
func TestNACKedRemovalOutlastsChangesOfMode(t *testing.T) {
	t.Parallel()
	g := wholeRig(t, four, "a=1", "b=1", "c=1", "d=1")
	g.stream.limits.Turn = 100
	answer := func(r *Response, kind AnswerKind, m world.Mode) {
		g.stream.Request(g.of, &Request{Mode: m, EachTime: true, Answer: Answer{Kind: kind, Serial: r.Serial}}, time.Time{})
	}
	g.of.Mark(map[string]Pending{"b": {}})
	bad := content{"a": "1", "b": "bad", "c": "1", "d": "1"}
	answer(g.step(bad, nil, "a=1", "b=bad", "c=1", "d=1"), ACK, world.Delta)
	bad = content{"b": "bad again", "c": "1", "d": "1"}
	answer(g.step(bad, []string{"a", "b"}, "-a", "b=bad again"), NACK, world.WholeState)
	answer(g.step(bad, nil, "b=bad again", "c=1", "d=1"), NACK, world.Delta)
	answer(g.step(bad, nil, "-a"), ACK, world.Delta)
}
