package push

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// needyTypes has full sets of which each member needs a part.
func needyTypes() []world.TypeSpec {
	return []world.TypeSpec{wholes: {Name: "wholes", Whole: true, Needs: []string{"parts"}}, parts: {Name: "parts"}, links: {Name: "links"}}
}

// resumedWhole is a subscriber that comes back with a full set and its parts, which
// are on their way.
func resumedWhole(e *Engine) (s *Subscriber, part *session.Response) {
	s = e.Connect(Info{ID: "test", Protocol: protocols[world.WholeState]}, world.Client{Kind: "test"})
	claim := world.VersionOf([]byte("of another process"))
	s.ask(session.Request{Type: parts, Replace: true, Names: []string{"a", "b"}, Claim: &claim})
	part = s.receive()
	s.ask(session.Request{Type: wholes, Wildcard: session.WildcardOn, Claim: &claim})
	return s, part
}

// A subscriber deletes what a full set lacks. So one that comes back is not sent a
// set without the members that wait for what they need: the set waits.
func TestFullSetOfOneThatComesBackLacksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := runTypes(t, Config{}, needyTypes())
		w := fakeWorld{}.with(parts, "a", "part a").with(parts, "b", "part b").with(wholes, "a", "a").with(wholes, "b", "b").with(wholes, "c", "c")
		e.publish(w, parts)
		<-e.Primed()
		s, part := resumedWhole(e)
		nothingComes(t, s)
		s.ack(part)
		if got := contentsOf(s.receive()); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("got %v", got)
		}
	})
}

// What a NACKed part keeps back may never come, and the subscriber may have its member
// from before. So it is in the set.
func TestFullSetOfOneThatComesBackHasWhatANACKKeepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := runTypes(t, Config{}, needyTypes())
		w := fakeWorld{}.with(parts, "a", "part a").with(parts, "b", "part b").with(wholes, "a", "a").with(wholes, "c", "c")
		e.publish(w, parts)
		<-e.Primed()
		s, part := resumedWhole(e)
		for part.Type == parts { // until each is known to be bad by itself
			s.nack(part)
			part = s.receive()
		}
		if got := contentsOf(part); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("got %v", got)
		}
	})
}

// A full set that does not fit goes in increments. A change that comes while the set is
// composed, and that a debounce of full sets delays, is among them.
func TestChangeDuringASwitchOfModeIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		types := fakeTypes()
		types[wholes].Debounce[world.WholeState] = world.Debounce{Quiet: time.Second}
		e := runTypes(t, Config{Largest: 3}, types)
		w := fakeWorld{}.with(wholes, "a", "12").with(wholes, "b", "12")
		w[wholes]["b"].encode = func(string) {
			e.publish(w.with(wholes, "c", "3"), wholes, "c")
			synctest.Wait() // the dispatcher has made the step
		}
		e.publish(w, wholes)
		<-e.Primed()
		s := e.Connect(Info{Protocol: protocols[world.WholeState]}, world.Client{})
		s.ask(session.Request{Type: wholes, Wildcard: session.WildcardOn, Either: true})
		first := s.receive()
		got := contentsOf(first)
		s.ack(first)
		wants(t, "in increments", append(got, s.receiveAll(e)...), "12", "12", "3")
	})
}
