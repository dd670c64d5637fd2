package source_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// A registry loses all of 150 endpoints, and the next time lists 149 of them.
// The one that is really gone goes with the next equal listing, however soon
// that comes.
func TestWhatIsLeftOfALieGoesWithTheNextEqualListing(t *testing.T) {
	supervise(t, func(b *bridge) {
		rest := fleet(0, 30, 5)
		rest[29] = service("s29", "f29", crowd(4)...)
		b.list(fleet(0, 30, 5)...)
		b.list()
		b.standing(150, 180)
		time.Sleep(time.Second)
		b.list(rest...)
		b.standing(150, 1)
		mentions(t, b.Status().Reason, "1 of 150 endpoints", "until the next equal listing", "isthmus sources release reg")
		time.Sleep(time.Second)
		b.list(rest...)
		b.standing(149, 0)
		b.inState(source.StateLive)
	})
}

// It need not come back at once, and the supervisor asks for the listing.
func TestLieThatIsTakenBackByAndBy(t *testing.T) {
	supervise(t, func(b *bridge) {
		b.list(fleet(0, 30, 5)...)
		b.list()
		b.list(fleet(0, 12, 5)...)
		b.list(fleet(0, 12, 5)...) // so many may be still to come
		b.list(fleet(0, 28, 5)...)
		b.standing(150, 12)
		b.registry.answer(source.Listing{Objects: fleet(0, 28, 5)})
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		b.standing(150, 12)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.standing(140, 0)
	})
}

// A rest that is much is no rest, and what is reported is no listing.
func TestWhatIsNoLieWaitsOn(t *testing.T) {
	for name, then := range map[string]func(b *bridge){
		"half of it":           func(b *bridge) { b.list(fleet(0, 16, 5)...); b.list(fleet(0, 16, 5)...) },
		"the same goes again":  func(b *bridge) { b.list(fleet(0, 29, 5)...); b.list() },
		"reported, not listed": func(b *bridge) { b.change(source.Change{Upserts: fleet(0, 29, 5)}) },
	} {
		t.Run(name, func(t *testing.T) {
			supervise(t, func(b *bridge) {
				b.list(fleet(0, 30, 5)...)
				b.list()
				then(b)
				if st := b.Status(); st.Endpoints != 150 || st.State != source.StateHeld {
					t.Errorf("%d endpoints, %s: %s", st.Endpoints, st.State, st.Reason)
				}
			})
		})
	}
}

// Nor is it a rest if it would be held by itself, however much is back.
func TestRestThatIsASuspiciousDropWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := connectWith(t, newLedger(), source.Config{Hold: source.Hold{Share: 0.05, Min: 5, For: time.Minute}})
		b.list(fleet(0, 30, 5)...)
		b.list()
		b.list(fleet(0, 28, 5)...)
		b.list(fleet(0, 28, 5)...)
		b.standing(150, 12)
		b.list(fleet(0, 29, 5)...) // 5 of 150 are no suspicious drop
		b.list(fleet(0, 29, 5)...)
		b.standing(145, 0)
	})
}

// A service that lost its 12 endpoints says so, however large the source.
func TestReasonCountsWhatIsJudged(t *testing.T) {
	supervise(t, func(b *bridge) {
		all := append(fleet(0, 100, 5), service("a", "fa", crowd(12)...), service("b", "fb", crowd(15)...))
		b.list(all...)
		b.list(append(fleet(0, 100, 5), all[101])...)
		mentions(t, b.Status().Reason, "12 of 12 endpoints disappeared at once, of Service ns/a;")
		b.list(fleet(0, 100, 5)...)
		mentions(t, b.Status().Reason, "27 of 27 endpoints disappeared at once, of Service ns/a, Service ns/b;")
		b.change(source.Change{Deletes: []model.Ref{ref(model.KindService, "a")}})
		b.list(append(fleet(0, 100, 5), service("b", "fb", crowd(5)...))...)
		mentions(t, b.Status().Reason, "10 of 15 endpoints disappeared at once, of Service ns/b;")
		b.list()
		mentions(t, b.Status().Reason, "515 of 515 endpoints")
	})
}
