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
	wholes Type = iota
	parts
	links
)

// silentKind is of clients that are told nothing of links that do not exist.
const silentKind = "deaf"

func fakeTypes() []TypeSpec {
	return []TypeSpec{wholes: {Name: "wholes", Whole: true, RemoveLast: true}, parts: {Name: "parts"}, links: {Name: "links", Needs: []Type{parts}, SilentTo: []string{silentKind}}}
}

// fakeWorld holds the content of resources by type and name. All views see all of it.
type fakeWorld [3]map[string]*fakeSubject

type fakeSubject struct {
	t       Type
	name    string
	content string
	encoded *atomic.Int64     // counts the calls of Encode; may be nil
	encode  func(name string) // called by Encode; may be nil
}

type fakeSlot struct {
	t    Type
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

func (w fakeWorld) View(c Client) View { return View{Kind: c.Kind, Namespace: c.Namespace} }

func (w fakeWorld) Names(_ View, t Type) iter.Seq[string] { return maps.Keys(w[t]) }

func (w fakeWorld) Find(_ View, t Type, name string) (Subject, bool) {
	s, ok := w[t][name]
	return s, ok
}

func (w fakeWorld) Void(Type, string) (Encoded, bool) { return Encoded{}, false }

func (w fakeWorld) Complete() bool { return true }

// with returns a world in which one resource has another content.
func (w fakeWorld) with(t Type, name, content string) fakeWorld {
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
			w[t][name] = &fakeSubject{t: Type(t), name: name, content: "first content of " + name}
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
	c.Types, c.Frame = fakeTypes(), noFrame
	e := New(c)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { e.Run(ctx) })
	tb.Cleanup(func() {
		stop()
		done.Wait()
	})
	return e
}

// publish makes a world the newest, in which some resources of a type changed.
func (e *Engine) publish(w fakeWorld, t Type, names ...string) {
	u := Update{World: w}
	for _, name := range names {
		u.Changed = append(u.Changed, Changed{Type: t, Name: name})
	}
	e.Publish(u)
}

// connected returns a subscriber to names of a type.
func connected(e *Engine, m Mode, t Type, names ...string) *Subscriber {
	s := e.Connect(Info{ID: "test"}, Client{Kind: "test"}, m)
	if m == WholeState {
		s.Request(Request{Type: t, Replace: true, Names: names})
	} else {
		s.Request(Request{Type: t, Subscribe: names})
	}
	return s
}

// receive takes the next response as a stream does.
func (s *Subscriber) receive() Response {
	r := <-s.Out()
	s.Sent(r)
	return r
}

func (s *Subscriber) accept(r Response) {
	s.Request(Request{Type: r.Type, Answer: Answer{Verdict: Accept, Serial: r.Serial}})
}

func (s *Subscriber) refuse(r Response) {
	s.Request(Request{Type: r.Type, Answer: Answer{Verdict: Refuse, Serial: r.Serial, Reason: "bad"}})
}

// contents lists what a response brings.
func (r Response) contents() []string {
	var list []string
	for _, res := range r.Resources {
		list = append(list, string(res.Body))
	}
	slices.Sort(list)
	return list
}
