package push

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The types of the fake worlds: full sets that are removed last, single
// resources, and such as refer to those.
const (
	wholes = iota
	parts
	links
)

// silentKind is of clients that get no answer for links that do not exist.
const silentKind = "silent"

func fakeTypes() []world.TypeSpec {
	return []world.TypeSpec{wholes: {Name: "wholes", Whole: true}, parts: {Name: "parts"}, links: {Name: "links", Needs: []string{"parts"}, Absent: absentLink}}
}

func absentLink(kind string, m world.Mode) world.Absence {
	if kind == silentKind {
		return world.Silence
	}
	return world.Removal
}

// fakeWorld holds the content of resources by type and name. All views see all of it.
type fakeWorld [3]map[string]*fakeSubject

type fakeSubject struct {
	t       world.Row
	name    string
	content string
	encoded *atomic.Int64     // counts the calls of Encode; may be nil
	encode  func(name string) // called by Encode; may be nil
}

type fakeSlot struct {
	t    world.Row
	name string
}

func (s *fakeSubject) Slot() any { return fakeSlot{s.t, s.name} }

func (s *fakeSubject) Encode() world.Encoded {
	if s.encoded != nil {
		s.encoded.Add(1)
	}
	if s.encode != nil {
		s.encode(s.name)
	}
	body := []byte(s.content)
	return world.Encoded{Name: s.name, Version: world.VersionOf(body), Body: body}
}

// Refers is to the resource of the same name.
func (s *fakeSubject) Refers(string) iter.Seq[string] { return slices.Values([]string{s.name}) }

func (w fakeWorld) View(_ world.Row, c world.Client) world.View {
	return [2]string{c.Kind, c.Namespace}
}

func (w fakeWorld) Names(_ world.View, t world.Row) iter.Seq[string] { return maps.Keys(w[t]) }

func (w fakeWorld) Find(_ world.View, t world.Row, name string) (world.Subject, bool) {
	s, ok := w[t][name]
	return s, ok
}

func (w fakeWorld) Complete() bool { return true }

// with returns a world in which one resource has another content.
func (w fakeWorld) with(t world.Row, name, content string) fakeWorld {
	w[t] = maps.Clone(w[t])
	if w[t] == nil {
		w[t] = map[string]*fakeSubject{}
	}
	w[t][name] = &fakeSubject{t: t, name: name, content: content}
	return w
}

// many returns a world of n resources of each type.
func many(n int) fakeWorld {
	var w fakeWorld
	for t := range w {
		w[t] = make(map[string]*fakeSubject, n)
		for i := range n {
			name := nameAt(i)
			w[t][name] = &fakeSubject{t: world.Row(t), name: name, content: "first content of " + name}
		}
	}
	return w
}

func nameAt(i int) string { return "outbound|80||service-" + strconv.Itoa(i) + ".example" }

func namesOf(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = nameAt(i)
	}
	return names
}

func noFrame(world.Encoded) [2][]byte { return [2][]byte{} }

// run starts an engine that ends with the test.
func run(tb testing.TB, c Config) *Engine {
	tb.Helper()
	return runTypes(tb, c, fakeTypes())
}

// runTypes starts an engine of one producer.
func runTypes(tb testing.TB, c Config, types []world.TypeSpec) *Engine {
	tb.Helper()
	e := newEngine(c, types)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { e.Run(ctx) })
	tb.Cleanup(func() {
		stop()
		done.Wait()
	})
	return e
}

// newEngine returns an engine of one producer that does not run.
func newEngine(c Config, types []world.TypeSpec) *Engine {
	c.Frame = noFrame
	e := New(c)
	e.Produce(types)
	return e
}

// delayed are the fake types with a debounce.
func delayed(d world.Debounce) []world.TypeSpec {
	types := fakeTypes()
	for t := range types {
		types[t].Debounce = [world.Modes]world.Debounce{d, d}
	}
	return types
}

// publish makes a world the newest, in which some resources of a type changed.
func (e *Engine) publish(w fakeWorld, t world.Row, names ...string) {
	u := world.Update{World: w}
	for _, name := range names {
		u.Changed = append(u.Changed, world.Changed{Row: t, Name: name})
	}
	e.producers[0].Publish(u)
}

// connected returns a subscriber to names of a type.
func connected(e *Engine, m world.Mode, t world.Type, names ...string) *Subscriber {
	s := e.Connect(Info{ID: "test", Protocol: protocols[m]}, world.Client{Kind: "test"})
	if m == world.WholeState {
		s.ask(session.Request{Type: t, Replace: true, Names: names})
	} else {
		s.ask(session.Request{Type: t, Mode: world.Delta, Subscribe: names})
	}
	return s
}

var protocols = [world.Modes]string{"whole states", "delta"}

// ask makes a request within every budget, in the mode of the subscriber's protocol.
func (s *Subscriber) ask(r session.Request) {
	if s.Info.Protocol == protocols[world.Delta] {
		r.Mode = world.Delta
	}
	if err := s.Request(r); err != nil {
		panic(err)
	}
}

func (s *Subscriber) receive() *session.Response {
	r := <-s.Out()
	s.Sent(r)
	return r
}

func (s *Subscriber) ack(r *session.Response) {
	s.ask(session.Request{Type: r.Type, Answer: session.Answer{Kind: session.ACK, Serial: r.Serial}})
}

func (s *Subscriber) nack(r *session.Response) {
	s.ask(session.Request{Type: r.Type, Answer: session.Answer{Kind: session.NACK, Serial: r.Serial, Reason: "bad"}})
}

// contentsOf lists what a response brings.
func contentsOf(r *session.Response) []string {
	var list []string
	for _, res := range r.Resources {
		list = append(list, string(res.Body))
	}
	slices.Sort(list)
	return list
}
