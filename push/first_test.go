package push

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// firstState reads and ACKs a first state, and returns the names in it and how many
// responses it took. Only the last may say that it ends it.
func (s *Subscriber) firstState(t *testing.T) (names map[string]bool, responses int) {
	t.Helper()
	names = map[string]bool{}
	for {
		synctest.Wait() // whatever can be sent without an ACK has been
		var r *session.Response
		select {
		case r = <-s.Out():
			s.Sent(r)
		default:
			t.Fatalf("after %d responses of %d names nothing says that the first state ends", responses, len(names))
		}
		responses++
		for _, res := range r.Resources {
			names[res.Name] = true
		}
		for _, name := range r.Removed {
			delete(names, name)
		}
		if !r.First {
			t.Fatalf("response %d does not say that it is of the first state", responses)
		}
		s.ack(r)
		if r.Ends {
			return names, responses
		}
	}
}

// marked connects a subscriber to everything, which asks for the mark.
func marked(e *Engine, held map[string]world.Version) *Subscriber {
	s := e.Connect(Info{ID: "test", Protocol: protocols[world.Delta]}, world.Client{Kind: "test"})
	s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn, MarkFirst: true, Held: held})
	return s
}

// However a first state is cut, its last response says so, and no response before it:
// by then the subscriber holds all there is.
func TestLastResponseOfAFirstStateSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		resources, budget, least int
	}{
		"nothing":                       {0, 0, 1},
		"one response":                  {10, 0, 1},
		"cut by bytes":                  {100, 200, 10},
		"cut by names":                  {4097, 0, 2},
		"cut at the very end of a turn": {8192, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := run(t, Config{Budget: test.budget})
				w := many(test.resources)
				e.publish(w, parts)
				<-e.Primed()
				s := marked(e, nil)
				got, responses := s.firstState(t)
				if len(got) != test.resources || responses < test.least {
					t.Errorf("it ends after %d responses of %d names, want %d names", responses, len(got), test.resources)
				}
				nothingComes(t, s)
				e.publish(w.with(parts, nameAt(0), "new"), parts, nameAt(0))
				if r := s.receive(); r.First || r.Ends {
					t.Error("a change after the first state says that it is of it")
				}
			})
		})
	}
}

// What changes while a first state is on its way belongs to it as long as something of
// it is left, and never comes after its end unnoticed.
func TestFirstStateEndsWithWhatChangedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Budget: 200})
		w := many(100)
		e.publish(w, parts)
		<-e.Primed()
		s := marked(e, nil)
		first := s.receive()
		delete(w[parts], first.Resources[0].Name)
		w = w.with(parts, "more", "more")
		e.publish(w, parts, first.Resources[0].Name, "more")
		synctest.Wait()
		s.ack(first)
		got, _ := s.firstState(t)
		for _, res := range first.Resources[1:] {
			got[res.Name] = true
		}
		for name := range w[parts] {
			if !got[name] {
				t.Errorf("the first state ends without %s", name)
			}
		}
	})
}

// One that comes back with all there is has nothing to be sent but the end. Who does not
// ask for the mark is sent nothing, and never a mark.
func TestFirstStateOfOneThatResumesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(8193)
		e.publish(w, parts)
		<-e.Primed()
		held := map[string]world.Version{}
		for name, subject := range w[parts] {
			held[name] = world.VersionOf([]byte(subject.content))
		}
		s := marked(e, maps.Clone(held))
		if got, responses := s.firstState(t); len(got) != 0 || responses != 1 {
			t.Errorf("it is sent %d names in %d responses", len(got), responses)
		}
		nothingComes(t, s)
		other := e.Connect(Info{ID: "other", Protocol: protocols[world.Delta]}, world.Client{Kind: "test"})
		other.ask(session.Request{Type: parts, Wildcard: session.WildcardOn, Held: held})
		nothingComes(t, other)
		none := e.Connect(Info{ID: "none", Protocol: protocols[world.Delta]}, world.Client{Kind: "test"})
		none.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
		for received := 0; received < len(held); {
			r := none.receive()
			if received += len(r.Resources); r.First || r.Ends {
				t.Error("a response says what was not asked for")
			}
			none.ack(r)
		}
		nothingComes(t, none)
	})
}

// A response that ends a first state and is NACKed says no second time that it ends it,
// and the resources that are good are sent again.
func TestEndOfAFirstStateIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		e.publish(many(4), parts)
		<-e.Primed()
		s := marked(e, nil)
		r := s.receive()
		if !r.First || !r.Ends {
			t.Fatalf("the first response: first %t, ends %t", r.First, r.Ends)
		}
		s.nack(r)
		synctest.Wait()
		for range 10 {
			select {
			case r := <-s.Out():
				if s.Sent(r); r.First || r.Ends {
					t.Error("the mark comes again")
				}
				s.ack(r)
				synctest.Wait()
			default:
				return
			}
		}
		t.Error("it does not come to rest")
	})
}

// What was NACKed together is tried again before the first state ends.
func TestFirstStateEndsAfterWhatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Budget: 200})
		e.publish(many(7), parts) // two responses
		<-e.Primed()
		s := marked(e, nil)
		first := s.receive()
		if len(first.Resources) < 2 || first.Ends {
			t.Fatalf("the first response has %d resources, and ends it: %t", len(first.Resources), first.Ends)
		}
		s.nack(first)
		if got, _ := s.firstState(t); len(got) != 7 {
			t.Errorf("the first state ends with %d names", len(got))
		}
	})
}
