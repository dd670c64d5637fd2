package push

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// shown is what of a subscriber's resources is compared: name, state, reason, and
// whether something newer may be there.
func shown(s *Subscriber, typeName string) (list []string) {
	all, _ := s.Resources(typeName, "", 100)
	for _, r := range all {
		text := fmt.Sprintf("%s %s", r.Name, r.State)
		if r.Version != "" {
			text += " has"
		}
		if r.Pending {
			text += " pending"
		}
		if r.Reason != "" {
			text += ": " + r.Reason
		}
		list = append(list, text)
	}
	return list
}

func mustShow(t *testing.T, when string, s *Subscriber, typeName string, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, shown(s, typeName)); diff != "" {
		t.Errorf("%s, -want +got:\n%s", when, diff)
	}
}

// TestResourcesShowHowEachStands follows resources from the request to an ACK, a NACK
// and a removal.
func TestResourcesShowHowEachStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		w := many(2)
		e.publish(w, parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, nameAt(0), nameAt(1), "absent")
		typeName := e.table.Load().types[parts].Name
		const unanswered, lacking = ": the client has not answered yet", "absent idle: no such resource for this client: it does not exist, or the client may not see it"
		first := s.receive()
		all, next := s.Resources(typeName, "", 100)
		if next != "" {
			t.Errorf("there are more behind %q", next)
		}
		for _, r := range first.Resources {
			at := slices.IndexFunc(all, func(a session.ResourceStatus) bool { return a.Name == r.Name })
			if at < 0 || all[at].Version != r.Version.String() || all[at].State != session.Waiting {
				t.Errorf("%s was sent as %s; shown are %+v", r.Name, r.Version, all)
			}
		}
		s.ack(first)
		mustShow(t, "after the ACK", s, typeName, inOrder(lacking, nameAt(0)+" accepted has", nameAt(1)+" accepted has")...)

		w = w.with(parts, nameAt(0), "bad")
		e.publish(w, parts, nameAt(0))
		bad := s.receive()
		mustShow(t, "before the answer", s, typeName, inOrder(lacking, nameAt(0)+" waiting has"+unanswered, nameAt(1)+" accepted has")...)
		s.nack(bad)
		reason := s.status().Types[0].NACKReason
		mustShow(t, "after the NACK", s, typeName, inOrder(lacking, nameAt(0)+" "+string(session.NACKed)+": "+reason, nameAt(1)+" accepted has")...)
	})
}

// inOrder is what is shown, by name.
func inOrder(list ...string) []string {
	slices.Sort(list)
	return list
}

// TestPagesOfResourcesAreTheWhole reads what a subscriber holds in pages of every size.
func TestPagesOfResourcesAreTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 25
		e := run(t, Config{})
		e.publish(many(n), parts)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(n)...)
		s.ack(s.receive())
		typeName := e.table.Load().types[parts].Name
		whole, _ := s.Resources(typeName, "", n)
		if len(whole) != n {
			t.Fatalf("%d resources, not %d", len(whole), n)
		}
		for size := 1; size <= n+1; size++ {
			var all []session.ResourceStatus
			for after, pages := "", 0; pages == 0 || after != ""; pages++ {
				page, next := s.Resources(typeName, after, size)
				if len(page) > size {
					t.Errorf("a page of %d has %d", size, len(page))
				}
				all, after = append(all, page...), next
			}
			if diff := cmp.Diff(whole, all); diff != "" {
				t.Errorf("in pages of %d, -want +got:\n%s", size, diff)
			}
		}
		if list, next := s.Resources("nothing", "", n); list != nil || next != "" {
			t.Errorf("of a type that it has not asked for there are %v, and more behind %q", list, next)
		}
	})
}

// BenchmarkPageOfResources reads the first page of a client that holds very much. The
// lock is held while its table is copied and while the page's names are looked at.
func BenchmarkPageOfResources(b *testing.B) {
	const n = 50_000
	e := run(b, Config{})
	e.publish(many(n), parts)
	<-e.Primed()
	s := connected(e, world.Delta, parts, namesOf(n)...)
	typeName := e.table.Load().types[parts].Name
	for got := 0; got < n; {
		r := <-s.Out()
		s.Sent(r)
		got += len(r.Resources)
		s.ack(r)
	}
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			if list, _ := s.Resources(typeName, "", 1000); len(list) != 1000 {
				b.Fatal(len(list))
			}
		}
	})
	b.Run("locked", func(b *testing.B) {
		names, _ := s.namesBehind(typeName, "", 1000)
		for b.Loop() {
			s.copyNames(typeName)
			s.mu.Lock()
			for _, name := range names {
				session.ResourceOf(s.interestNamed(typeName).state, name)
			}
			s.mu.Unlock()
		}
	})
}
