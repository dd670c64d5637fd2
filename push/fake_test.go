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

func fakeTypes() []TypeSpec {
	return []TypeSpec{wholes: {Name: "wholes", Whole: true}, parts: {Name: "parts"}, links: {Name: "links", Needs: []string{"parts"}, Absent: absentLink}}
}

func absentLink(kind string, m Mode) Absence {
	if kind == silentKind {
		return Silence
	}
	return Removal
}

// fakeWorld holds the content of resources by type and name. All views see all of it.
type fakeWorld [3]map[string]*fakeSubject

type fakeSubject struct {
	t       Row
	name    string
	content string
	encoded *atomic.Int64     // counts the calls of Encode; may be nil
	encode  func(name string) // called by Encode; may be nil
}

type fakeSlot struct {
	t    Row
	name string
}

func (s *fakeSubject) Slot() any { return fakeSlot{s.t, s.name} }

func (s *fakeSubject) Encode() Encoded {
	if s.encoded != nil {
		s.encoded.Add(1)
	}
	if s.encode != nil {
		s.encode(s.name)
	}
	body := []byte(s.content)
	return Encoded{Name: s.name, Version: VersionOf(body), Body: body}
}

// Refers is to the resource of the same name.
func (s *fakeSubject) Refers(string) iter.Seq[string] { return slices.Values([]string{s.name}) }

func (w fakeWorld) View(_ Row, c Client) View { return [2]string{c.Kind, c.Namespace} }

func (w fakeWorld) Names(_ View, t Row) iter.Seq[string] { return maps.Keys(w[t]) }

func (w fakeWorld) Find(_ View, t Row, name string) (Subject, bool) {
	s, ok := w[t][name]
	return s, ok
}

func (w fakeWorld) Complete() bool { return true }

// with returns a world in which one resource has another content.
func (w fakeWorld) with(t Row, name, content string) fakeWorld {
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
			w[t][name] = &fakeSubject{t: Row(t), name: name, content: "first content of " + name}
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

func noFrame(Encoded) [2][]byte { return [2][]byte{} }

// run starts an engine that ends with the test.
func run(tb testing.TB, c Config) *Engine {
	tb.Helper()
	return runTypes(tb, c, fakeTypes())
}

// runTypes starts an engine of one producer.
func runTypes(tb testing.TB, c Config, types []TypeSpec) *Engine {
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
func newEngine(c Config, types []TypeSpec) *Engine {
	c.Frame = noFrame
	e := New(c)
	e.Produce(types)
	return e
}

// delayed are the fake types with a debounce.
func delayed(d Debounce) []TypeSpec {
	types := fakeTypes()
	for t := range types {
		types[t].Debounce = [modes]Debounce{d, d}
	}
	return types
}

// publish makes a world the newest, in which some resources of a type changed.
func (e *Engine) publish(w fakeWorld, t Row, names ...string) {
	u := Update{World: w}
	for _, name := range names {
		u.Changed = append(u.Changed, Changed{Row: t, Name: name})
	}
	e.producers[0].Publish(u)
}

// connected returns a subscriber to names of a type.
func connected(e *Engine, m Mode, t Type, names ...string) *Subscriber {
	s := e.Connect(Info{ID: "test", Protocol: protocols[m]}, Client{Kind: "test"})
	if m == WholeState {
		s.ask(Request{Type: t, Replace: true, Names: names})
	} else {
		s.ask(Request{Type: t, Mode: Delta, Subscribe: names})
	}
	return s
}

var protocols = [modes]string{"whole states", "delta"}

// ask makes a request within every budget, in the mode of the subscriber's protocol.
func (s *Subscriber) ask(r Request) {
	if s.Info.Protocol == protocols[Delta] {
		r.Mode = Delta
	}
	if err := s.Request(r); err != nil {
		panic(err)
	}
}

func (s *Subscriber) receive() *Response {
	r := <-s.Out()
	s.Sent(r)
	return r
}

func (s *Subscriber) ack(r *Response) {
	s.ask(Request{Type: r.Type, Answer: Answer{Kind: ACK, Serial: r.Serial}})
}

func (s *Subscriber) nack(r *Response) {
	s.ask(Request{Type: r.Type, Answer: Answer{Kind: NACK, Serial: r.Serial, Reason: "bad"}})
}

// contentsOf lists what a response brings.
func contentsOf(r *Response) []string {
	var list []string
	for _, res := range r.Resources {
		list = append(list, string(res.Body))
	}
	slices.Sort(list)
	return list
}
