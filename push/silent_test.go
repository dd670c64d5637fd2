package push

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A kind of client that would take a removal for an answer is sent none for a name
// that does not exist. It is sent what comes, and removals of that.
func TestMissingNameIsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		var w fakeWorld
		e.publish(w, links)
		<-e.Primed()
		silent := e.Connect(Info{ID: "silent", Protocol: protocols[world.Delta]}, world.Client{Kind: silentKind})
		other := e.Connect(Info{ID: "other", Protocol: protocols[world.Delta]}, world.Client{Kind: "test"})
		for _, s := range []*Subscriber{silent, other} {
			s.ask(session.Request{Type: links, Subscribe: []string{"a"}})
		}
		r := other.receive()
		if !slices.Equal(r.Removed, []string{"a"}) {
			t.Errorf("the other was sent the removals %v", r.Removed)
		}
		other.ack(r)
		nothingComes(t, silent)
		silent.ask(session.Request{Type: links, Subscribe: []string{"a"}}) // asked again
		nothingComes(t, silent)
		e.publish(w.with(links, "a", "0"), links, "a")
		for _, s := range []*Subscriber{silent, other} {
			r := s.receive()
			if got := contentsOf(r); !slices.Equal(got, []string{"0"}) {
				t.Errorf("%s got %v", s.Info.ID, got)
			}
			s.ack(r)
		}
		e.publish(w, links, "a")
		for _, s := range []*Subscriber{silent, other} {
			if r := s.receive(); !slices.Equal(r.Removed, []string{"a"}) {
				t.Errorf("%s was sent the removals %v", s.Info.ID, r.Removed)
			}
		}
		// One that resumes is sent the removal of what it holds.
		back := e.Connect(Info{ID: "back", Protocol: protocols[world.Delta]}, world.Client{Kind: silentKind})
		back.ask(session.Request{Type: links, Subscribe: []string{"a"}, Held: map[string]world.Version{"a": {1}}})
		if r := back.receive(); !slices.Equal(r.Removed, []string{"a"}) {
			t.Errorf("the one that resumes was sent the removals %v", r.Removed)
		}
	})
}
