package source_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/source"
)

// What another system keeps of a source, which does not list it, counts as held
// here: what is lost besides is no small loss.
func TestWhatIsKeptElsewhereCountsAsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		elsewhere           int
		before, after       int // services of five endpoints
		endpoints, heldThen int
	}{
		"nothing elsewhere":        {0, 2, 1, 5, 0},
		"few elsewhere":            {4, 2, 1, 5, 0},
		"enough elsewhere":         {5, 2, 1, 10, 6},
		"much elsewhere":           {95, 2, 1, 10, 6},
		"half of all":              {20, 20, 12, 60, 0},
		"more than half of all":    {21, 20, 12, 100, 48},
		"more than half is stored": {1, 20, 10, 100, 60},
	} {
		t.Run(name, func(t *testing.T) {
			supervise(t, func(b *bridge) {
				b.list(fleet(0, c.before, 5)...)
				b.lacks(c.elsewhere)
				b.list(fleet(0, c.after, 5)...)
				b.standing(c.endpoints, c.heldThen)
			})
		})
	}
}

func (b *bridge) lacks(endpoints int) {
	b.t.Helper()
	if err := b.Lacks(b.t.Context(), endpoints, endpoints); err != nil {
		b.t.Error(err)
	}
}

// What has been missing for long says nothing about what is lost now. The source
// is asked all the same.
func TestWhatIsKeptElsewhereForLongIsNotSuspected(t *testing.T) {
	supervise(t, func(b *bridge) {
		b.list(fleet(0, 2, 5)...)
		if err := b.Lacks(b.t.Context(), 95, 0); err != nil {
			t.Fatal(err)
		}
		b.list(fleet(0, 1, 5)...)
		b.standing(5, 0)
		start := time.Now()
		time.Sleep(45 * time.Second)
		if asked := b.registry.asked(start); !slices.Contains(asked, 30*time.Second) {
			t.Errorf("asked to list after %v", asked)
		}
	})
}

func TestSourceIsAskedWhileItsEndpointsAreKeptElsewhere(t *testing.T) {
	supervise(t, func(b *bridge) {
		b.registry.answer(source.Listing{Objects: fleet(0, 1, 5)})
		b.list(fleet(0, 1, 5)...)
		start := time.Now()
		time.Sleep(10 * time.Second)
		b.lacks(95)
		time.Sleep(65 * time.Second)
		b.lacks(90)
		time.Sleep(20 * time.Second)
		b.lacks(0)
		time.Sleep(time.Hour)
		want := []time.Duration{40 * time.Second, 70 * time.Second}
		if diff := cmp.Diff(want, b.registry.asked(start)); diff != "" {
			t.Errorf("asked to list (-want +got):\n%s", diff)
		}
	})
}

// A run that fails takes nothing of that back.
func TestSourceIsAskedInItsNextRun(t *testing.T) {
	supervise(t, func(b *bridge) {
		b.list(fleet(0, 1, 5)...)
		b.lacks(95)
		b.fail("broken")
		time.Sleep(time.Minute)
		b.list(fleet(0, 1, 5)...)
		start := time.Now()
		time.Sleep(45 * time.Second)
		if diff := cmp.Diff([]time.Duration{30 * time.Second}, slices.DeleteFunc(b.registry.asked(start), func(d time.Duration) bool { return d < 0 })); diff != "" {
			t.Errorf("asked to list (-want +got):\n%s", diff)
		}
	})
}

// Nor do other settings, for which the source is run by another supervisor.
func TestSuccessorKnowsWhatIsKeptElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		before := source.NewSupervisor("reg", &registry{}, l, source.Config{})
		if err := before.Lacks(t.Context(), 95, 95); err != nil {
			t.Fatal(err)
		}
		b := connectWith(t, l, source.Config{})
		if err := b.Succeed(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		b.list(fleet(0, 1, 5)...)
		b.list()
		b.standing(5, 6)
	})
}

func TestReleaseTellsWhoKeepsSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		b := connectWith(t, newLedger(), source.Config{Released: func() { told++ }})
		b.list(fleet(0, 2, 5)...)
		b.lacks(3)
		b.list()
		b.standing(10, 12)
		for _, want := range []int{15, 0} {
			if released, err := b.Release(t.Context()); err != nil || released != want {
				t.Errorf("released %d (%v), want %d", released, err, want)
			}
		}
		if told != 2 {
			t.Errorf("told %d times", told)
		}
		b.standing(0, 0)
	})
}

// Every complete listing is told of, with the revision that has all of it: that
// of what was said before, too, which whoever reads the store may not have yet.
func TestEachCompleteListingIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []uint64
		b := connectWith(t, newLedger(), source.Config{Listed: func(revision uint64) { told = append(told, revision) }})
		b.list(fleet(0, 1, 1)...)
		b.list(fleet(0, 1, 1)...)
		b.replace(source.Listing{Places: []string{"f00"}, Objects: fleet(0, 1, 2)})
		b.list(fleet(0, 1, 2)...)
		b.list(fleet(0, 2, 2)...)
		if diff := cmp.Diff([]uint64{1, 1, 2, 3}, told); diff != "" {
			t.Errorf("told of revisions (-want +got):\n%s", diff)
		}
	})
}
