package push

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// partial is a world of which some source has not been listed.
type partial struct{ fakeWorld }

func (partial) Complete() bool { return false }

// A subscriber keeps what it came back with while that may yet be listed. Then it is
// sent what differs or is gone, and nothing else.
func TestOnlyTheDifferenceComesOnceEverythingIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		e.producers[0].Publish(world.Update{World: partial{}})
		<-e.Primed()
		s := e.Connect(Info{ID: "test"}, world.Client{Kind: "test"})
		held := map[string]world.Version{}
		for _, name := range []string{"same", "other", "gone"} {
			held[name] = world.VersionOf([]byte(name))
		}
		s.ask(session.Request{Type: parts, Mode: world.Delta, Wildcard: session.WildcardOn, Subscribe: []string{"none"}, Held: held})
		nothingComes(t, s)
		e.publish(fakeWorld{}.with(parts, "same", "same").with(parts, "other", "another"), parts, "same", "other")
		r := s.receive()
		slices.Sort(r.Removed)
		if got := contentsOf(r); !slices.Equal(got, []string{"another"}) || !slices.Equal(r.Removed, []string{"gone", "none"}) {
			t.Errorf("got %v, and %v are removed", got, r.Removed)
		}
		s.ack(r)
		nothingComes(t, s)
	})
}
