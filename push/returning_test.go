package push

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A subscriber that comes back with a full set from here is sent the newest one, though some
// source was never listed. With one from elsewhere it waits until the sources were waited for.
func TestFullSetOfOneThatComesBackBeforeEverythingIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := runTypes(t, Config{}, needyTypes())
		publish := func(waited bool, w fakeWorld, names ...string) {
			u := world.Update{World: partial{w}, Waited: waited}
			for _, name := range names {
				u.Changed = append(u.Changed, world.Changed{Row: wholes, Name: name})
			}
			e.producers[0].Publish(u)
			synctest.Wait()
		}
		comes := func(claim *world.Version) *Subscriber {
			s := e.Connect(Info{ID: "test", Protocol: protocols[world.WholeState]}, world.Client{Kind: "test"})
			s.ask(session.Request{Type: wholes, Wildcard: session.WildcardOn, Claim: claim})
			synctest.Wait()
			return s
		}
		next := func(s *Subscriber) *session.Response {
			t.Helper()
			if len(s.Out()) == 0 {
				t.Fatal("nothing comes")
			}
			return s.receive()
		}
		publish(false, fakeWorld{}.with(wholes, "a", "a").with(wholes, "b", "b"), "a", "b")
		<-e.Primed()
		first := comes(nil)
		set := next(first)
		first.ack(set)
		first.Close()
		publish(false, fakeWorld{}.with(wholes, "a", "a").with(wholes, "c", "c"), "b", "c")

		if got := contentsOf(next(comes(&set.Version))); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("one that comes back is sent %v", got)
		}
		elsewhere := world.VersionOf([]byte("of another process"))
		moved := comes(&elsewhere)
		nothingComes(t, moved)
		publish(true, fakeWorld{}.with(wholes, "a", "a").with(wholes, "c", "c").with(wholes, "d", "d"), "d")
		if got := contentsOf(next(moved)); !slices.Equal(got, []string{"a", "c", "d"}) {
			t.Errorf("once the sources were waited for, one that comes from elsewhere is sent %v", got)
		}
	})
}
