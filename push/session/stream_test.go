package session

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// content is a world of one type: the content of its resources by name.
type content map[string]string

// text is a resource with its content.
type text struct{ name, body string }

func (t text) Slot() any { return t.name }

func (t text) Encode() world.Encoded {
	return world.Encoded{Name: t.name, Version: world.VersionOf([]byte(t.body)), Body: []byte(t.body)}
}

func (content) View(world.Row, world.Client) world.View { return nil }

func (c content) Names(world.View, world.Row) iter.Seq[string] { return maps.Keys(c) }

func (c content) Find(_ world.View, _ world.Row, name string) (world.Subject, bool) {
	body, ok := c[name]
	return text{name, body}, ok
}

func (content) Complete() bool { return true }

// rig is a stream of one type, and a look at its worlds.
type rig struct {
	*testing.T
	stream *Stream
	of     *State
	look   Look
}

func newRig(t *testing.T, m world.Mode, r Request) *rig {
	t.Helper()
	types := (&world.Types{}).With(nil, world.Info{TypeSpec: world.TypeSpec{Name: "text"}})
	reader := world.NewReader(func(world.Encoded) (heads [world.Modes][]byte) { return heads }, nil)
	g := &rig{T: t, stream: NewStream(Limits{Budget: 1 << 20, Turn: 100}, "", reader.Seed())}
	g.look = Look{Reader: reader, Types: types, Sources: make([]Source, 1), Marked: make([][world.Modes]uint64, 1)}
	g.of = g.stream.Begin(types, 0, m, time.Time{})
	g.of.SetView(&world.SharedView{})
	g.of.Subscribe(r.Subscribe, r.Subscribe, true)
	g.of.SetWildcard(r.Wildcard, false)
	g.of.Begun(&r)
	return g
}

// step marks names and expects the next response, as "name=body" and "-name". Nil expects
// none.
func (g *rig) step(w world.World, marked []string, want ...string) *Response {
	g.Helper()
	marks := map[string]Pending{}
	for _, name := range marked {
		marks[name] = Pending{}
	}
	g.of.Mark(marks)
	g.look.At(g.look.Step + 1)
	g.look.Sources[0].World = w
	var got []string
	var last *Response
	for r := range Advance(g.stream, &g.look) {
		for _, res := range r.Resources {
			got = append(got, fmt.Sprintf("%s=%s", res.Name, res.Body))
		}
		for _, name := range r.Removed {
			got = append(got, "-"+name)
		}
		last = r
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		g.Fatalf("sent %q, want %q", got, want)
	}
	return last
}

func (g *rig) answer(r *Response, kind AnswerKind) {
	g.stream.Request(g.of, &Request{Answer: Answer{Kind: kind, Serial: r.Serial, Reason: "bad"}}, time.Time{})
}

// A stream is sent what it lacks, once its last response was answered.
func TestStreamIsSentTheDifference(t *testing.T) {
	t.Parallel()
	g := newRig(t, world.Delta, Request{Wildcard: WildcardOn})
	first := g.step(content{"a": "1", "b": "1"}, nil, "a=1", "b=1")
	g.step(content{"a": "2", "b": "1"}, []string{"a"})
	g.answer(first, ACK)
	second := g.step(content{"a": "3", "c": "1"}, []string{"b", "c"}, "-b", "a=3", "c=1")
	g.answer(second, ACK)
	g.step(content{"a": "3", "c": "1"}, []string{"a", "b", "c"})
}

// Of resources that were NACKed together, those at fault are found by ever smaller groups,
// and are not sent again.
func TestNACKedGroupsBecomeSmaller(t *testing.T) {
	t.Parallel()
	g := newRig(t, world.Delta, Request{Subscribe: []string{"a", "b", "bad", "d"}})
	w := content{"a": "1", "b": "1", "bad": "1", "d": "1"}
	for _, want := range [][]string{{"a=1", "b=1", "bad=1", "d=1"}, {"a=1", "b=1"}, {"bad=1", "d=1"}, {"bad=1"}, {"d=1"}} {
		r, kind := g.step(w, nil, want...), ACK
		if slices.ContainsFunc(want, func(s string) bool { return strings.HasPrefix(s, "bad") }) {
			kind = NACK
		}
		g.answer(r, kind)
	}
	g.step(w, []string{"bad"})
	w["bad"] = "2"
	g.step(w, []string{"bad"}, "bad=2")
}
