package push

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A resource that was NACKed alone is at fault itself: the outcome of other NACKed
// resources is no reason to try it again.
func TestNACKedAloneWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(3)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(3)...)
		s.ack(s.receive())
		for _, step := range []struct{ name, content string }{{nameAt(0), "bad"}, {nameAt(1), "bad, too"}, {nameAt(0), "worse"}} {
			w = w.with(parts, step.name, step.content)
			e.publish(w, parts, step.name)
			r := s.receive()
			if got := contentsOf(r); !slices.Equal(got, []string{step.content}) {
				t.Errorf("got %v, want %s", got, step.content)
			}
			s.nack(r)
			nothingComes(t, s)
		}
	})
}

// A resource that is tried again may have to wait for another that was NACKed. It
// comes when that is fixed, and no worker is busy until then.
func TestRetryOfWhatIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(4)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(4)...)
		s.ack(s.receive())
		s.ask(session.Request{Type: links, Subscribe: namesOf(4)})
		s.ack(s.receive())
		step := func(typ world.Type, content string) *session.Response {
			for _, name := range namesOf(4) {
				w = w.with(world.Row(typ), name, content)
			}
			e.publish(w, world.Row(typ), namesOf(4)...)
			return s.receive()
		}
		unanswered := step(links, "second")
		s.nack(step(parts, "bad"))
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			s.nack(s.receive()) // in halves, until each of them is alone
		}
		s.nack(unanswered)
		s.ask(session.Request{Type: links, Unsubscribe: namesOf(1)})
		nothingComes(t, s)
		s.ack(step(parts, "fixed"))
		got := 0
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			r := s.receive()
			got += len(r.Resources)
			s.ack(r)
		}
		if got != 3 {
			t.Errorf("%d came again, want 3", got)
		}
	})
}

// unwanted has a client NACK a response that brought two names, one of which it no
// longer asks for. It returns the responses that follow, all of which are ACKed.
func unwanted(t *testing.T, ask session.Request, change func(w fakeWorld) fakeWorld, cease session.Request) (got []*session.Response) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(2)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, nameAt(0))
		s.ask(ask)
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			s.ack(s.receive())
		}
		w = change(w.with(parts, nameAt(0), "bad"))
		e.publish(w, parts, namesOf(2)...)
		open := s.receive()
		if n := len(open.Resources) + len(open.Removed); n != 2 {
			t.Fatalf("the response brought %d", n)
		}
		s.ask(cease)
		s.nack(open)
		e.publish(w.with(parts, nameAt(0), "fixed"), parts, nameAt(0))
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			r := s.receive()
			got = append(got, r)
			s.ack(r)
		}
		if n := s.status().Types[0].Held; n != 1 {
			t.Errorf("it is shown to hold %d", n)
		}
	})
	return got
}

// A client is sent no names that it no longer asks for, whatever it NACKed.
func TestNACKOfNamesNotWanted(t *testing.T) {
	for name, got := range map[string][]*session.Response{
		"a name": unwanted(t, session.Request{Type: parts, Subscribe: []string{nameAt(1)}},
			func(w fakeWorld) fakeWorld { return w.with(parts, nameAt(1), "fine") },
			session.Request{Type: parts, Unsubscribe: []string{nameAt(1)}}),
		"a removal of everything": unwanted(t, session.Request{Type: parts, Wildcard: session.WildcardOn},
			func(w fakeWorld) fakeWorld {
				w[parts] = map[string]*fakeSubject{nameAt(0): w[parts][nameAt(0)]}
				return w
			},
			session.Request{Type: parts, Wildcard: session.WildcardOff}),
	} {
		fixed := false
		for _, r := range got {
			if len(r.Removed) > 0 || len(r.Resources) != 1 || r.Resources[0].Name != nameAt(0) {
				t.Errorf("%s: got %v without %v", name, contentsOf(r), r.Removed)
			}
			fixed = fixed || slices.Contains(contentsOf(r), "fixed")
		}
		if !fixed {
			t.Errorf("%s: the fixed one did not come", name)
		}
	}
}

// Names that come and go leave nothing behind, even where the protocol cannot express
// that they are gone.
func TestPassingNamesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(1)
		e.publish(w, parts)
		<-e.Primed()
		s := e.Connect(Info{}, world.Client{})
		s.ask(session.Request{Type: parts, Replace: true, Wildcard: session.WildcardOn})
		s.ack(s.receive())
		for _, answer := range []func(*session.Response){s.ack, s.nack} {
			for _, name := range namesOf(20)[1:] {
				e.publish(w.with(parts, name, "passing"), parts, name)
				answer(s.receive())
				e.publish(w, parts, name)
				nothingComes(t, s)
			}
			if n := s.status().Types[0].Held; n != 1 {
				t.Errorf("it is shown to hold %d", n)
			}
		}
	})
}

// A resource that returns to the content that was NACKed is not sent again.
func TestNACKedIsNotSentAgainAsItIs(t *testing.T) {
	for _, typ := range []world.Type{wholes, parts} {
		synctest.Test(t, func(t *testing.T) {
			e := run(t, Config{})
			w := many(2)
			e.publish(w, world.Row(typ))
			<-e.Primed()
			s := connected(e, world.WholeState, typ, namesOf(2)...)
			s.ack(s.receive())
			for range 2 { // another subject each time, with equal content
				w = w.with(world.Row(typ), nameAt(0), "bad")
				e.publish(w, world.Row(typ), nameAt(0))
				synctest.Wait()
				if len(s.Out()) > 0 {
					s.nack(s.receive())
				}
			}
			if n := s.status().Types[0].NACKs; n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// The answer to the newest full set counts. A NACKed set is sent again without the
// names that the client no longer asks for.
func TestNACKOfFullSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Patience: time.Second})
		w := many(2)
		e.publish(w, wholes)
		<-e.Primed()
		s := connected(e, world.WholeState, wholes, namesOf(2)...)
		s.ack(s.receive())
		step := func(i int, content string) *session.Response {
			w = w.with(wholes, nameAt(i), content)
			e.publish(w, wholes, nameAt(i))
			return s.receive()
		}
		older, newer := step(0, "bad"), step(0, "fixed")
		s.nack(older)
		s.ack(newer)
		nothingComes(t, s)

		w = w.with(wholes, nameAt(0), "bad again")
		newer = step(1, "fine")
		s.ask(session.Request{Type: wholes, Replace: true, Names: []string{nameAt(1)}, Overtaken: true})
		e.publish(w, wholes, nameAt(0))
		s.nack(newer)
		if got := contentsOf(s.receive()); !slices.Equal(got, []string{"fine"}) {
			t.Errorf("got %v", got)
		}
	})
}

// A resource that refers to another which cannot be sent yet waits for it.
func TestLinkWaitsForWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(2)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(2)...)
		s.ack(s.receive())
		s.ask(session.Request{Type: links, Subscribe: namesOf(2)})
		s.ack(s.receive())
		w = w.with(parts, nameAt(0), "second")
		e.publish(w, parts, nameAt(0))
		open := s.receive()
		w = w.with(parts, nameAt(1), "second").with(links, nameAt(1), "second")
		e.producers[0].Publish(world.Update{World: w, Changed: []world.Changed{{Row: parts, Name: nameAt(1)}, {Row: links, Name: nameAt(1)}}})
		nothingComes(t, s)
		s.ack(open)
		for _, want := range []world.Type{parts, links} {
			r := s.receive()
			if r.Type != want {
				t.Errorf("type %d came, want %d", r.Type, want)
			}
			s.ack(r)
		}
	})
}

// A client may NACK a response twice, or one that it was never sent.
func TestNACKOfNothing(t *testing.T) {
	for _, typ := range []world.Type{wholes, parts} {
		synctest.Test(t, func(t *testing.T) {
			e := run(t, Config{})
			e.publish(many(3), world.Row(typ))
			<-e.Primed()
			s := connected(e, world.WholeState, typ, namesOf(3)...)
			r := s.receive()
			s.nack(r)
			s.nack(r)
			later := *r
			later.Serial += 1000
			s.nack(&later)
			again := 0
			for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
				r := s.receive()
				again += len(r.Resources)
				s.ack(r)
			}
			if want := map[world.Type]int{wholes: 0, parts: 3}[typ]; again != want {
				t.Errorf("%d came again, want %d: those that may not be at fault", again, want)
			}
			if n := s.status().Types[0].NACKs; n != 1 {
				t.Errorf("%d NACKs were counted", n)
			}
		})
	}
}

// A removal that was NACKed with something else is tried again until it stands
// alone, as a resource is: its client may still have what was removed.
func TestNACKedRemovalIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(4)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(4)...)
		s.ack(s.receive())
		for _, name := range namesOf(4) {
			w = w.with(parts, name, "second")
		}
		delete(w[parts], nameAt(1)) // it is tried again with the first, twice
		e.publish(w, parts, namesOf(4)...)
		gone := false
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			r := s.receive()
			if slices.ContainsFunc(r.Resources, func(res *world.Resource) bool { return res.Name == nameAt(0) }) {
				s.nack(r)
				continue
			}
			gone = gone || slices.Contains(r.Removed, nameAt(1))
			s.ack(r)
		}
		if !gone {
			t.Error("the removal never came by itself")
		}
	})
}

// A wildcard's removals that were NACKed with others come again. They do not stay on
// record once they are NACKed alone.
func TestRemovalsNACKedWithOthersComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "cluster"}}) })
		w := newNotes(1)
		p.Publish(w.step([]*note{{0, "a", "1", nil}, {0, "b", "1", nil}, {0, "c", "1", nil}}))
		s := deltaClient(e, world.Client{}, p.Type(0))
		if got := s.receiveAll(e); len(got) != 3 {
			t.Fatalf("at first: %q", got)
		}
		p.Publish(w.step([]*note{{0, "a", "bad", nil}}, noteSlot{0, "b"}, noteSlot{0, "c"}))
		synctest.Wait()
		r := s.receive()
		s.ask(session.Request{Type: r.Type, Mode: world.Delta, Answer: session.Answer{Kind: session.NACK, Serial: r.Serial, Reason: "a"}})
		removed := map[string]bool{}
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			r := s.receive()
			answer := session.Answer{Kind: session.ACK, Serial: r.Serial}
			for _, name := range r.Removed {
				removed[name] = true
			}
			if len(r.Resources) > 0 {
				answer = session.Answer{Kind: session.NACK, Serial: r.Serial, Reason: "a"}
			}
			s.ask(session.Request{Type: r.Type, Mode: world.Delta, Answer: answer})
		}
		if !removed["b"] || !removed["c"] {
			t.Errorf("removals that came again: %v", removed)
		}
	})
}

// A resource that a fault of ours keeps from being tried again comes once the fault
// is over, and no worker is busy until then.
func TestNACKedWithOthersComesAfterAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(2)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(2)...)
		s.ack(s.receive())
		w = w.with(parts, nameAt(0), "fine").with(parts, nameAt(1), "bad")
		e.publish(w, parts, namesOf(2)...)
		both := s.receive()
		update := func(w world.World) {
			e.producers[0].Publish(world.Update{World: w, Changed: []world.Changed{{Row: parts, Name: nameAt(0)}}})
			synctest.Wait()
		}
		update(cursed{fakeWorld: w, find: nameAt(0)})
		s.nack(both)
		alone := s.receive()
		if got := contentsOf(alone); !slices.Equal(got, []string{"bad"}) {
			t.Errorf("got %q while the other cannot be found", got)
		}
		s.nack(alone)
		nothingComes(t, s)
		update(w)
		wants(t, "after the fault", s.receiveAll(e), "parts "+nameAt(0)+" fine")
	})
}

// A route to a cluster that is gone does not wait for the removal, even if that was
// NACKed: it may stay NACKed for ever.
func TestNACKedRemovalHoldsNothingBack(t *testing.T) {
	for name, others := range map[string][]*note{"alone": nil, "with others": {{clusters, "bad", "1", nil}}} {
		synctest.Test(t, func(t *testing.T) {
			var p *Producer
			e := start(t, Config{}, func(e *Engine) { p = e.Produce(references()) })
			w := newNotes(5)
			p.Publish(w.step([]*note{{clusters, "c", "1", nil}}))
			s := e.Connect(Info{Protocol: protocols[world.Delta]}, world.Client{})
			s.ask(session.Request{Type: clusters, Subscribe: []string{"c"}, Wildcard: session.WildcardOn})
			s.receiveAll(e)
			p.Publish(w.step(others, noteSlot{clusters, "c"}))
			for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
				s.nack(s.receive())
			}
			s.ask(session.Request{Type: routes, Wildcard: session.WildcardOn})
			p.Publish(w.step([]*note{{routes, "r", "1", to("cluster", "c")}}))
			wants(t, "after a removal NACKed "+name, s.receiveAll(e), "route r 1")
		})
	}
}

// Nothing of a wildcard that has ended is tried again, not even removals.
func TestNACKedRemovalsEndWithTheWildcard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "cluster"}}) })
		w := newNotes(1)
		p.Publish(w.step([]*note{{0, "a", "1", nil}, {0, "b", "1", nil}, {0, "c", "1", nil}}))
		s := deltaClient(e, world.Client{}, 0)
		s.receiveAll(e)
		p.Publish(w.step([]*note{{0, "a", "bad", nil}}, noteSlot{0, "b"}, noteSlot{0, "c"}))
		synctest.Wait()
		s.nack(s.receive())
		again := s.receive() // some of it, for the rest is yet to come
		s.ask(session.Request{Wildcard: session.WildcardOff})
		s.nack(again)
		wants(t, "after the end", s.receiveAll(e))
	})
}

// A resource that came back, and was sent, before its removal is NACKed is not sent
// again.
func TestNACKedRemovalOfWhatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Producer
		e := start(t, Config{Patience: time.Second}, func(e *Engine) { p = e.Produce([]world.TypeSpec{{Name: "cluster"}}) })
		w := newNotes(1)
		p.Publish(w.step([]*note{{0, "a", "1", nil}, {0, "b", "1", nil}, {0, "c", "1", nil}}))
		s := deltaClient(e, world.Client{}, 0)
		s.receiveAll(e)
		p.Publish(w.step([]*note{{0, "a", "2", nil}}, noteSlot{0, "b"}, noteSlot{0, "c"}))
		synctest.Wait()
		first := s.receive()
		p.Publish(w.step([]*note{{0, "a", "3", nil}, {0, "b", "1", nil}}))
		second := s.receive() // once the first is overdue
		s.nack(first)
		s.ack(second)
		wants(t, "which no later response brought", s.receiveAll(e), "cluster -c")
	})
}
