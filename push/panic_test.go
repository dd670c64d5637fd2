package push

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// cursed is a world with faults.
type cursed struct {
	fakeWorld
	find     string // of a name
	view     string // of a namespace
	complete bool
}

func (w cursed) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	if name == w.find {
		panic("find")
	}
	return w.fakeWorld.Find(v, r, name)
}

func (w cursed) View(r world.Row, c world.Client) world.View {
	if c.Namespace != "" && c.Namespace == w.view {
		panic("view")
	}
	return w.fakeWorld.View(r, c)
}

func (w cursed) Complete() bool {
	if w.complete {
		panic("complete")
	}
	return true
}

func (e *Engine) survived(where string) uint64 {
	for _, p := range e.Panics() {
		if p.Where == where {
			return p.Count
		}
	}
	return 0
}

// spoil returns a world in which a resource cannot be encoded.
func (w fakeWorld) spoil(t world.Row, name string) fakeWorld {
	w = w.with(t, name, "spoilt")
	w[t][name].encode = func(string) { panic("encode") }
	return w
}

func allOf(e *Engine, m world.Mode, t world.Type) *Subscriber {
	s := e.Connect(Info{ID: "all", Protocol: protocols[m]}, world.Client{Kind: "test"})
	s.ask(session.Request{Type: t, Wildcard: session.WildcardOn, Replace: m == world.WholeState})
	return s
}

// A resource that cannot be encoded costs nobody the others. Clients that have it
// keep it, new ones are sent its last good form, and once it is well it is sent.
func TestPanicInAResourceCostsThatResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(3)
		e.publish(w, wholes)
		synctest.Wait()
		delta, whole := allOf(e, world.Delta, wholes), allOf(e, world.WholeState, wholes)
		for _, s := range []*Subscriber{delta, whole} {
			s.ack(s.receive())
		}
		first, second := w[wholes][nameAt(0)].content, w[wholes][nameAt(2)].content
		w = w.spoil(wholes, nameAt(0)).with(wholes, nameAt(1), "changed")
		e.publish(w, wholes, nameAt(0), nameAt(1))
		for s, want := range map[*Subscriber][]string{delta: {"changed"}, whole: {"changed", first, second}} {
			r := s.receive()
			if got := contentsOf(r); !slices.Equal(got, want) || len(r.Removed) > 0 {
				t.Errorf("got %q without %q, want %q", got, r.Removed, want)
			}
			s.ack(r)
		}
		if got := contentsOf(allOf(e, world.WholeState, wholes).receive()); !slices.Equal(got, []string{"changed", first, second}) {
			t.Errorf("who came was given %q", got)
		}
		if n := e.survived(world.PanicResource); n != 1 {
			t.Errorf("%d panics were counted", n)
		}
		w = w.with(wholes, nameAt(0), "well")
		e.publish(w, wholes, nameAt(0))
		if got := contentsOf(delta.receive()); !slices.Equal(got, []string{"well"}) {
			t.Errorf("got %q", got)
		}
	})
}

// A resource that never had a good form is not sent.
func TestPanicInANewResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		e.publish(many(2).spoil(wholes, nameAt(0)), wholes)
		synctest.Wait()
		good := "first content of " + nameAt(1)
		for _, m := range []world.Mode{world.WholeState, world.Delta} {
			if got := contentsOf(allOf(e, m, wholes).receive()); !slices.Equal(got, []string{good}) {
				t.Errorf("got %q", got)
			}
		}
		r := connected(e, world.Delta, wholes, nameAt(0), nameAt(1)).receive()
		if !slices.Equal(contentsOf(r), []string{good}) || !slices.Equal(r.Removed, []string{nameAt(0)}) {
			t.Errorf("got %q without %q", contentsOf(r), r.Removed)
		}
	})
}

// A resource that cannot be found is as one that cannot be encoded, and the
// dispatcher that looks for it goes on.
func TestPanicInFindingAResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(2)
		e.publish(w, parts)
		synctest.Wait()
		s := connected(e, world.Delta, parts, namesOf(2)...)
		s.ack(s.receive())
		w = w.with(parts, nameAt(0), "changed").with(parts, nameAt(1), "changed, too")
		update := func(w world.World) {
			e.producers[0].Publish(world.Update{World: w, Changed: []world.Changed{{Row: parts, Name: nameAt(0)}, {Row: parts, Name: nameAt(1)}}})
		}
		update(cursed{fakeWorld: w, find: nameAt(0)})
		r := s.receive()
		if !slices.Equal(contentsOf(r), []string{"changed, too"}) || len(r.Removed) > 0 {
			t.Errorf("got %q without %q", contentsOf(r), r.Removed)
		}
		s.ack(r)
		update(w)
		if got := contentsOf(s.receive()); !slices.Equal(got, []string{"changed"}) {
			t.Errorf("got %q", got)
		}
	})
}

// ended takes what a subscriber is still sent, and fails if it is not ended.
func ended(t *testing.T, s *Subscriber) {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case _, open := <-s.Out():
			if !open {
				if !s.Failed() {
					t.Error("it is ended without a fault")
				}
				return
			}
		case <-limit:
			t.Error("it is not ended")
			return
		}
	}
}

// A panic in the work for one subscriber ends that one, in a worker and in the
// dispatcher alike; the others are sent the changes.
func TestPanicForAStreamEndsThatStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(1)
		e.publish(w, parts)
		synctest.Wait()
		join := func(namespace string) *Subscriber {
			s := e.Connect(Info{ID: namespace, Protocol: protocols[world.Delta]}, world.Client{Kind: "test", Namespace: namespace})
			s.ask(session.Request{Type: parts, Subscribe: namesOf(1)})
			return s
		}
		poor, well := join("poor"), join("well")
		for _, s := range []*Subscriber{poor, well} {
			s.ack(s.receive())
		}
		w = w.with(parts, nameAt(0), "changed")
		e.producers[0].Publish(world.Update{World: cursed{fakeWorld: w, view: "poor"}, Reviewed: []string{"*"}, Changed: []world.Changed{{Row: parts, Name: nameAt(0)}}})
		r := well.receive()
		if got := contentsOf(r); !slices.Equal(got, []string{"changed"}) {
			t.Errorf("got %q", got)
		}
		well.ack(r)
		ended(t, poor)
		ended(t, join("poor")) // in a worker
		synctest.Wait()        // a stream is closed before it is forgotten
		if n := e.survived(world.PanicStream); n != 2 || e.Len() != 1 {
			t.Errorf("%d panics were counted, %d subscribers are left", n, e.Len())
		}
		e.publish(w.with(parts, nameAt(0), "well"), parts, nameAt(0))
		synctest.Wait()
		for _, s := range []*Subscriber{well, join("poor")} {
			if got := contentsOf(s.receive()); !slices.Equal(got, []string{"well"}) {
				t.Errorf("got %q", got)
			}
		}
	})
}

// A panic in a step for all ends all, so that none of them misses a change.
func TestPanicInAStepEndsEveryStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(1)
		e.publish(w, parts)
		synctest.Wait()
		list := []*Subscriber{connected(e, world.Delta, parts, namesOf(1)...), connected(e, world.WholeState, parts, namesOf(1)...)}
		for _, s := range list {
			s.ack(s.receive())
		}
		w = w.with(parts, nameAt(0), "changed")
		e.producers[0].Publish(world.Update{World: cursed{fakeWorld: w, complete: true}})
		for _, s := range list {
			ended(t, s)
		}
		synctest.Wait() // a stream is closed before it is forgotten
		if n := e.survived(world.PanicStep); n != 1 || e.Len() != 0 {
			t.Errorf("%d panics were counted, %d subscribers are left", n, e.Len())
		}
		e.publish(w, parts)
		synctest.Wait()
		if got := contentsOf(connected(e, world.Delta, parts, namesOf(1)...).receive()); !slices.Equal(got, []string{"changed"}) {
			t.Errorf("got %q", got)
		}
	})
}

// A client whose view panics in a step is sent nothing of that step, not even by a
// worker that had taken it before. It would get resources of its view before, which
// it may not see any more.
func TestStreamWithoutAViewIsSentNothing(t *testing.T) {
	e := New(Config{Frame: noFrame})
	p := e.Produce([]world.TypeSpec{{Name: "service"}})
	w, d := newNotes(1), &dispatcher{core: &e.core}
	d.dispatch(p, w.step([]*note{{0, "a", "1", nil}}))
	s := deltaClient(e, world.Client{}, p.Type(0))
	(&worker{core: &e.core}).advance(s)
	s.ack(s.receive())
	w.view = func(world.Client) world.View { panic("the view of a client") }
	u := w.step([]*note{{0, "a", "2", nil}})
	u.Reviewed = []string{"*"}
	d.dispatch(p, u)
	(&worker{core: &e.core}).advance(s) // it was not known to have failed when the worker took it
	if len(s.Out()) > 0 {
		t.Errorf("it was sent %v", contentsOf(s.receive()))
	}
	s.Close()
}
