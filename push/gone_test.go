package push

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The encodings of names that came and went are not kept.
func TestEncodingsOfWhatIsGoneAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, stay = 2000, 10
		e := run(t, Config{})
		w := many(stay)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts)
		s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
		follow(s, parts)
		for n := range names {
			name := fmt.Sprint("passing ", n)
			e.publish(w.with(parts, name, "here"), parts, name)
			follow(s, parts)
			e.publish(w, parts, name)
			follow(s, parts)
		}
		if n := e.reader.Kept(); n > stay {
			t.Errorf("%d encodings are kept of %d resources", n, stay)
		}
	})
}

// A client is shown as NACKing for as long as there is what it NACKed, and it asks for that.
func TestNACKOfWhatIsGoneIsNotShown(t *testing.T) {
	for what, end := range map[string]func(e *Engine, s *Subscriber){
		"it is gone": func(e *Engine, _ *Subscriber) {
			e.publish(fakeWorld{}.with(links, "good", "1"), links, "bad")
			synctest.Wait()
		},
		"it is not asked for": func(_ *Engine, s *Subscriber) {
			s.ask(session.Request{Type: links, Replace: true, Names: []string{"good"}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := run(t, Config{})
				e.publish(fakeWorld{}.with(links, "good", "1").with(links, "bad", "1"), links)
				<-e.Primed()
				s := e.Connect(Info{ID: "test", Protocol: protocols[world.WholeState]}, world.Client{Kind: silentKind})
				s.ask(session.Request{Type: links, Replace: true, Names: []string{"good"}})
				s.ack(s.receive())
				s.ask(session.Request{Type: links, Replace: true, Names: []string{"good", "bad"}})
				time.Sleep(time.Second)
				s.nack(s.receive())
				synctest.Wait()
				if shown := e.Clients()[0].Types[0]; shown.State != session.NACKed || shown.Reason != "bad" {
					t.Fatalf("the client is shown as %s because %q", shown.State, shown.Reason)
				}
				end(e, s)
				if shown := e.Clients()[0].Types[0]; shown.State != session.ACKed || shown.Reason != "" || shown.LastNACK.IsZero() {
					t.Errorf("the client is shown as %s because %q, with its last NACK at %v", shown.State, shown.Reason, shown.LastNACK)
				}
			})
		})
	}
}

// A resource that no message can carry is shown as long as there is one.
func TestWhatIsTooLargeAndGoneIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{Largest: 10})
		e.publish(fakeWorld{}.with(parts, "a", "1"), parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts)
		s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
		follow(s, parts)
		e.publish(fakeWorld{}.with(parts, "a", "1").with(parts, "b", "far more than ten bytes"), parts, "b")
		synctest.Wait()
		if shown := e.Clients()[0].Types[0]; shown.State != session.NACKed {
			t.Fatalf("the client is shown as %s", shown.State)
		}
		e.publish(fakeWorld{}.with(parts, "a", "1"), parts, "b")
		synctest.Wait()
		if shown := e.Clients()[0].Types[0]; shown.State != session.ACKed {
			t.Errorf("the client is shown as %s because %q", shown.State, shown.Reason)
		}
		if n := s.types[parts].state.Counts().NACKed; n > 0 {
			t.Errorf("%d names are remembered", n)
		}
	})
}
