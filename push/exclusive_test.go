package push

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Of many resources that are at fault each is found in a few attempts, in which those
// that were found already are not tried again. Then all of them are tried again once.
func TestManyAtFaultTakeFewAttempts(t *testing.T) {
	const n, faults = 256, 32
	types := fakeTypes()
	types[parts].Exclusive = true
	synctest.Test(t, func(t *testing.T) {
		e := runTypes(t, Config{}, types)
		w := many(n)
		for i := range faults {
			w = w.with(parts, nameAt(i*n/faults), fmt.Sprint("bad ", i))
		}
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(n)...)
		attempts, fine := 0, map[string]bool{}
		for synctest.Wait(); len(s.Out()) > 0; synctest.Wait() {
			r := s.receive()
			attempts++
			if slices.ContainsFunc(contentsOf(r), func(content string) bool { return strings.HasPrefix(content, "bad") }) {
				s.nack(r)
				continue
			}
			for _, res := range r.Resources {
				fine[res.Name] = true
			}
			s.ack(r)
		}
		if len(fine) != n-faults {
			t.Errorf("%d arrived of %d that are fine", len(fine), n-faults)
		}
		// A binary search for each, and the second attempt without them all.
		if most := faults*2*3 + 2*2*faults; attempts > most {
			t.Errorf("%d attempts, and %d should do", attempts, most)
		}
	})
}

// A client with a wildcard for a type is sent the resources whose parents it is subscribed
// to, and the rest once it subscribes to their parents.
func TestWildcardSendsResourcesOfSubscribedParents(t *testing.T) {
	types := fakeTypes()
	types[links] = world.TypeSpec{Name: "tables", Brings: []string{"parts"}}
	types[parts].Awaited, types[parts].Parent = true, func(name string) string { return name }
	synctest.Test(t, func(t *testing.T) {
		e := runTypes(t, Config{Order: []string{"tables", "parts"}}, types)
		w := many(3)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, links, nameAt(0))
		comes := func(typ world.Type, names ...string) {
			t.Helper()
			r := s.receive()
			got := make([]string, 0, len(r.Resources))
			for _, res := range r.Resources {
				got = append(got, res.Name)
			}
			if r.Type != typ || !slices.Equal(got, names) {
				t.Errorf("got %v of type %d, want %v of %d", got, r.Type, names, typ)
			}
			s.ack(r)
		}
		comes(links, nameAt(0))
		s.ask(session.Request{Type: parts, Wildcard: session.WildcardOn})
		comes(parts, nameAt(0))
		w = w.with(parts, nameAt(1), "another").with(parts, nameAt(0), "new")
		e.publish(w, parts, namesOf(2)...)
		comes(parts, nameAt(0))
		s.ask(session.Request{Type: links, Subscribe: []string{nameAt(1)}})
		comes(links, nameAt(1))
		comes(parts, nameAt(1))
		e.publish(w.with(parts, nameAt(1), "newer"), parts, nameAt(1))
		comes(parts, nameAt(1))
		nothingComes(t, s)
	})
}
