package push

import (
	"slices"
	"testing"
	"testing/synctest"
)

// What is refused by itself is at fault itself: what happens to others that are
// refused is no reason to try it again.
func TestRefusedAloneWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(3)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, Delta, parts, namesOf(3)...)
		s.accept(s.receive())
		for _, step := range []struct{ name, content string }{{nameAt(0), "bad"}, {nameAt(1), "bad, too"}, {nameAt(0), "worse"}} {
			w = w.with(parts, step.name, step.content)
			e.publish(w, parts, step.name)
			r := s.receive()
			if got := r.contents(); !slices.Equal(got, []string{step.content}) {
				t.Errorf("got %v, want %s", got, step.content)
			}
			s.refuse(r)
			nothingComes(t, s)
		}
	})
}

// What is tried again may have to wait for something else that was refused. It
// comes when that is mended, and nobody is busy until then.
func TestRetryOfWhatIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(4)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, Delta, parts, namesOf(4)...)
		s.accept(s.receive())
		s.Request(Request{Type: links, Subscribe: namesOf(4)})
		s.accept(s.receive())
		step := func(typ Type, content string) Response {
			for _, name := range namesOf(4) {
				w = w.with(typ, name, content)
			}
			e.publish(w, typ, namesOf(4)...)
			return s.receive()
		}
		s.refuse(step(links, "bad"))
		s.refuse(step(parts, "bad"))
		s.Request(Request{Type: links, Unsubscribe: namesOf(1)})
		nothingComes(t, s)
		s.accept(step(parts, "mended"))
		got := 0
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			r := s.receive()
			got += len(r.Resources)
			s.accept(r)
		}
		if got != 3 {
			t.Errorf("%d came again, want 3", got)
		}
	})
}

// A client may refuse to hear that something is gone for which it does not ask
// any more.
func TestRefusalOfAnUnwantedRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		e.publish(many(2), parts)
		<-e.Primed()
		s := connected(e, Delta, parts, nameAt(0))
		s.Request(Request{Type: parts, Wildcard: WildcardOn})
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			s.accept(s.receive())
		}
		e.publish(many(1), parts, nameAt(1))
		removal := s.receive()
		if !slices.Equal(removal.Removed, []string{nameAt(1)}) {
			t.Fatalf("%v was removed", removal.Removed)
		}
		s.Request(Request{Type: parts, Wildcard: WildcardOff})
		s.refuse(removal)
		nothingComes(t, s)
	})
}

// A client may say twice that it refuses something, or refuse what it was never sent.
func TestRefusalOfNothing(t *testing.T) {
	for _, typ := range []Type{wholes, parts} {
		synctest.Test(t, func(t *testing.T) {
			e := run(t, Config{})
			e.publish(many(3), typ)
			<-e.Primed()
			s := connected(e, WholeState, typ, namesOf(3)...)
			r := s.receive()
			s.refuse(r)
			s.refuse(r)
			r.Serial += 100
			s.refuse(r)
			nothingComes(t, s)
			if n := s.status().Types[0].Refusals; n != 1 {
				t.Errorf("%d refusals were noted", n)
			}
		})
	}
}
