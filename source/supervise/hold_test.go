package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// fleet returns the services first to last-1, each in its own place and with so
// many endpoints.
func fleet(first, last, endpoints int) (objects []model.Object) {
	for i := first; i < last; i++ {
		objects = append(objects, service(fmt.Sprintf("s%02d", i), fmt.Sprintf("f%02d", i), crowd(endpoints)...))
	}
	return objects
}

// standing checks how many endpoints are stored, and how many records are held,
// both in the store and by the status.
func (b *bridge) standing(endpoints, held int) {
	b.t.Helper()
	stored, marked, holds := 0, 0, heldIn(b.store)
	for rec := range b.store.List(model.Filter{Source: "reg"}) {
		if rec.Kind == model.KindEndpoint || rec.Kind == model.KindWorkload {
			stored++
		}
		if _, held := holds.Of(rec.Ref, rec.Owner); held {
			marked++
		}
	}
	st := b.Status()
	if stored != endpoints || marked != held || st.Endpoints != stored || st.Held != marked {
		b.t.Errorf("%d endpoints are stored and %d records held, want %d and %d; the status says %d and %d (%s: %s)",
			stored, marked, endpoints, held, st.Endpoints, st.Held, st.State, st.Reason)
	}
	if live := st.State == source.StateLive; st.Held > 0 && live {
		b.t.Errorf("live although %d records are held", st.Held)
	}
}

// renamed returns the same services with as many other endpoints.
func renamed(objects []model.Object) (others []model.Object) {
	for _, o := range objects {
		o.Owned = slices.Clone(o.Owned)
		for i := range o.Owned {
			o.Owned[i].Name += "0"
			o.Owned[i].Spec = model.Endpoint{Address: fmt.Sprint("other-", i)}
		}
		others = append(others, o)
	}
	return others
}

func TestWhatIsSuspicious(t *testing.T) {
	for name, c := range map[string]struct {
		hold          hold.Config // default if zero
		edited        bool
		before, after []model.Object
		held          int // records
		stored        int // endpoints
	}{
		"less than half":              {before: fleet(0, 5, 5), after: fleet(2, 5, 5), stored: 15},
		"half of the source":          {before: fleet(0, 4, 5), after: fleet(2, 4, 5), held: 12, stored: 20},
		"more than half":              {before: fleet(0, 5, 5), after: fleet(3, 5, 5), held: 18, stored: 25},
		"more than half, but few":     {before: fleet(0, 3, 4), after: fleet(2, 3, 4), stored: 4},
		"everything, however little":  {before: fleet(0, 3, 3), after: nil, held: 12, stored: 9},
		"a single endpoint":           {before: fleet(0, 1, 1), after: nil, held: 2, stored: 1},
		"every endpoint, no service":  {before: fleet(0, 3, 3), after: fleet(0, 3, 0), held: 9, stored: 9},
		"everything, and others come": {before: fleet(0, 1, 1), after: fleet(1, 2, 1), held: 2, stored: 2},
		"another endpoint instead":    {before: fleet(0, 1, 1), after: []model.Object{service("s00", "f00", "other")}, stored: 1},
		"all but one of three":        {before: fleet(0, 3, 1), after: fleet(2, 3, 1), stored: 1},
		"each has another instead":    {before: fleet(0, 10, 1), after: renamed(fleet(0, 10, 1)), stored: 10},
		"every one, of more than min": {before: fleet(0, 11, 1), after: renamed(fleet(0, 11, 1)), held: 11, stored: 22},
		"so, in files that are edited": {
			edited: true,
			before: fleet(0, 11, 1), after: renamed(fleet(0, 11, 1)), stored: 11,
		},
		"so, with a share of 1": {
			hold:   hold.Config{Share: 1, Min: 10, For: time.Minute},
			before: fleet(0, 11, 1), after: renamed(fleet(0, 11, 1)), stored: 11,
		},
		"all but one of more than min": {before: fleet(0, 11, 1), after: append(fleet(0, 1, 1), renamed(fleet(1, 11, 1))...), stored: 11},
		"others make up for none":      {before: fleet(0, 3, 4), after: append(fleet(2, 3, 4), fleet(5, 90, 4)...), stored: 4 + 85*4},
		"nor does one of many":         {before: fleet(0, 5, 5), after: append(fleet(3, 5, 5), service("new", "f", crowd(90)...)), held: 18, stored: 25 + 90},
		"everything, just enough":      {before: fleet(0, 2, 5), after: nil, held: 12, stored: 10},
		"a service as large as min":    {before: fleet(0, 9, 10), after: fleet(1, 9, 10), stored: 80},
		"a service larger than min":    {before: fleet(0, 9, 11), after: fleet(1, 9, 11), held: 12, stored: 99},
		"two of them":                  {before: fleet(0, 9, 11), after: fleet(2, 9, 11), held: 24, stored: 99},
		"its endpoints alone":          {before: fleet(0, 9, 11), after: append(fleet(0, 1, 0), fleet(1, 9, 11)...), held: 11, stored: 99},
		"all but one of its endpoints": {before: fleet(0, 9, 11), after: append(fleet(0, 1, 1), fleet(1, 9, 11)...), stored: 89},
		"no endpoints at all":          {before: fleet(0, 30, 0), after: nil, held: 30, stored: 0},
		"all but one without any":      {before: fleet(0, 30, 0), after: fleet(29, 30, 0), stored: 0},
		"a share of 1": {
			hold:   hold.Config{Share: 1, Min: 10, For: time.Minute},
			before: fleet(0, 30, 10), after: nil, stored: 0,
		},
		"a share of 1 and a large service": {
			hold:   hold.Config{Share: 1, Min: 10, For: time.Minute},
			before: append(fleet(0, 30, 10), service("large", "f", crowd(11)...)), after: nil, held: 12, stored: 11,
		},
		"no tolerance": {
			hold:   hold.Config{For: time.Minute},
			before: fleet(0, 30, 10), after: append(fleet(0, 29, 10), fleet(29, 30, 9)...), held: 1, stored: 300,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := connectWith(t, newLedger(), supervise.Config{Hold: c.hold, Edited: c.edited})
				b.list(c.before...)
				b.list(c.after...)
				b.standing(c.stored, c.held)
				want := source.StateLive
				if c.held > 0 {
					want = source.StateHeld
				}
				b.inState(want)
			})
		})
	}
}

func TestAdditionsAndUpdatesApplyBesideAHold(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		after := fleet(3, 5, 5)
		after[0] = weighed(after[0], 2, 7)
		b.list(append(after, fleet(7, 9, 5)...)...)
		b.standing(35, 18)
		rec, _ := b.store.memory.Get(stored(model.KindEndpoint, "s03/10.0.0.2"))
		if weightOf(rec) != 7 {
			t.Error("an update beside a hold was not taken")
		}
		hold, _ := b.heldFor(model.KindService, "s00")
		if !hold.Since.Equal(time.Now()) {
			t.Errorf("held since %s", hold.Since)
		}
		mentions(t, hold.Reason, "not listed any more", "15 endpoints")
		commits := len(b.store.commits)
		b.list(append(after, fleet(7, 9, 5)...)...)
		if len(b.store.commits) != commits {
			t.Errorf("the same again was written: %v", b.store.last())
		}
	})
}

func TestReasonSaysWhatToDo(t *testing.T) {
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		b := connectWith(t, newLedger(), supervise.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		b.list(fleet(0, 5, 5)...)
		began := time.Now()
		for range 3 {
			b.list()
			time.Sleep(time.Second)
		}
		st := b.Status()
		mentions(t, st.Reason, "25 of 25 endpoints", "Service ns/s00, Service ns/s01, Service ns/s02, 2 more", "1m0s",
			"3 so far", "due at "+began.Add(time.Minute).UTC().Format(time.RFC3339), "isthmus sources release reg")
		if !st.Since.Equal(began) {
			t.Errorf("held since %s, want %s", st.Since, began)
		}
	})
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one for the hold:\n%s", n, log.String())
	}
	mentions(t, log.String(), "suspicious drop", "source=reg")
}

// A registry that lists when it is asked to has its drop taken after exactly
// the time to wait.
func TestEqualListingsRelease(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.registry.answer(model.Listing{Objects: fleet(4, 5, 5)})
		began := time.Now()
		b.list(fleet(4, 5, 5)...)
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		b.standing(25, 24)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.standing(5, 0)
		b.inState(source.StateLive)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]time.Duration{30 * time.Second, time.Minute}, b.registry.asked(began)); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

// Many listings in no time confirm nothing, and few in a long time neither.
func TestReleaseNeedsListingsAndTime(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		for range 29 {
			b.list()
			time.Sleep(2 * time.Second)
		}
		b.standing(25, 30)
		time.Sleep(2 * time.Second)
		b.list()
		b.standing(0, 0)

		b.list(fleet(0, 5, 5)...)
		b.list()
		time.Sleep(time.Hour)
		b.list()
		b.standing(25, 30)
		b.list()
		b.standing(0, 0)
	})
}

// Each held record goes after its own time, whatever happens to the others.
func TestEachHeldRecordHasItsOwnClock(t *testing.T) {
	minute := func(b *bridge, objects ...model.Object) {
		b.list(objects...)
		time.Sleep(time.Minute)
	}
	t.Run("more is missing", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(fleet(0, 10, 5)...)
			minute(b, fleet(6, 10, 5)...)
			minute(b, fleet(7, 10, 5)...)
			b.standing(50, 42)
			minute(b, fleet(7, 10, 5)...)
			b.standing(20, 6)
			b.list(fleet(7, 10, 5)...)
			b.standing(15, 0)
		})
	})
	t.Run("something is back", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(fleet(0, 10, 5)...)
			minute(b, fleet(6, 10, 5)...)
			minute(b, fleet(6, 10, 5)...)
			b.standing(50, 36)
			b.list(fleet(2, 10, 5)...)
			b.standing(40, 0)
		})
	})
	t.Run("everything is back", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(fleet(0, 10, 5)...)
			minute(b)
			minute(b)
			b.list(fleet(0, 10, 5)...)
			b.standing(50, 0)
			b.inState(source.StateLive)
			minute(b)
			b.standing(50, 60)
			minute(b)
			b.standing(50, 60)
		})
	})
}

// Services that lost everything wait by themselves, whatever happens beside them.
func TestServicesAreConfirmedOneByOne(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 20, 12)...)
		b.list(fleet(1, 20, 12)...)
		time.Sleep(40 * time.Second)
		b.list(fleet(2, 20, 12)...)
		time.Sleep(20 * time.Second)
		b.list(append(fleet(2, 3, 4), fleet(3, 20, 12)...)...)
		b.standing(20*12-12-8, 13)
		time.Sleep(40 * time.Second)
		b.list(append(fleet(2, 3, 4), fleet(3, 20, 12)...)...)
		b.standing(20*12-24-8, 0)
	})
}

// A service that is left with an endpoint lost nothing that is suspicious by itself.
func TestReplacedServiceIsReplaced(t *testing.T) {
	supervised(t, func(b *bridge) {
		rest := fleet(0, 10, 5)
		b.list(append(rest, service("a", "f", crowd(12)...))...)
		b.list(append(rest, service("a", "f", "new1", "new2"))...)
		b.standing(52, 0)
	})
}

func TestChangesApplyToWhatIsHeld(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.list(fleet(4, 5, 5)...)
		b.standing(25, 24)
		b.change(model.Change{Deletes: []model.Ref{ref(model.KindService, "s00")}})
		b.standing(20, 18)
		time.Sleep(30 * time.Second)
		b.list(fleet(4, 5, 5)...)
		b.change(model.Change{Upserts: fleet(1, 2, 3)})
		b.standing(18, 12)
		b.inState(source.StateHeld)
		b.change(model.Change{Deletes: []model.Ref{ref(model.KindService, "s02")}})
		b.standing(13, 6)
		time.Sleep(30 * time.Second)
		b.list(append(fleet(1, 2, 3), fleet(4, 5, 5)...)...)
		b.standing(8, 0)
		b.inState(source.StateLive)
	})
}

func TestWhatIsReportedRemovedPasses(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 4, 20)...)
		for i := range 4 {
			place := fmt.Sprintf("f%02d", i)
			b.replace(model.Listing{Places: []string{place}, Removed: []string{place}})
			b.standing(60-20*i, 0)
		}
	})
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 4, 20)...)
		b.list()
		b.replace(model.Listing{Places: []string{"f00", "f01"}, Removed: []string{"f00"}})
		b.standing(60, 63)
	})
	supervised(t, func(b *bridge) { // a service is reported removed, and one of two other records is missing
		policy := func(name string) model.Object {
			return model.Object{Record: model.Record{Ref: ref("Policy", name), Place: name, Spec: model.Opaque{Content: name}}}
		}
		b.list(service("s", "s"), policy("a"), policy("b"))
		b.replace(model.Listing{Objects: []model.Object{policy("a")}, Removed: []string{"s"}})
		b.holds("Policy ns/a in a")
	})
}

// A listing of a place counts for the records that stood there alone.
func TestPlacesConfirmWhatTheySee(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 10, 12)...)
		emptied := model.Listing{Places: []string{"f00"}}
		b.replace(emptied)
		b.standing(120, 13)
		time.Sleep(30 * time.Second)
		b.replace(emptied)
		time.Sleep(30 * time.Second)
		b.replace(emptied)
		b.standing(108, 0)

		b.list(fleet(1, 2, 12)...)
		time.Sleep(30 * time.Second)
		for range 9 {
			b.replace(model.Listing{Places: []string{"f02"}})
			time.Sleep(30 * time.Second)
		}
		b.standing(96, 7*13)
		b.list(fleet(1, 2, 12)...)
		b.standing(96, 7*13)
		b.list(fleet(1, 2, 12)...)
		b.standing(12, 0)
	})
}

func TestDropPieceByPieceAddsUp(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 10, 10)...)
		b.list(fleet(6, 10, 10)...)
		b.standing(100, 66)
		b.replace(model.Listing{Places: []string{"f06"}, Objects: fleet(6, 7, 9)})
		b.standing(100, 67)
		b.replace(model.Listing{Places: []string{"f06"}, Objects: fleet(6, 7, 10)})
		b.standing(100, 66)
	})
}

// No service stays without its endpoints, nor they without it.
func TestHeldObjectsStayWhole(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.list(append(fleet(0, 4, 1), fleet(4, 5, 5)...)...)
		b.standing(25, 16)
		b.list(append(fleet(0, 4, 1), fleet(4, 9, 20)...)...)
		b.standing(25+15+80, 16)
		b.list(append(fleet(1, 4, 1), fleet(4, 9, 20)...)...) // which is no suspicious drop by itself
		b.standing(25+15+80, 18)
	})
}

func TestRejectedAndUnreadIsNotMissing(t *testing.T) {
	rejections := func(rejections ...model.Rejection) model.Listing { return model.Listing{Rejected: rejections} }
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 3, 8)...)
		b.replace(rejections(bad("f00", "s00", "no ports"), bad("f01", "", "not YAML")))
		b.standing(16, 0) // 8 of 24 are missing
		b.list()
		b.standing(24, 27) // with those that went before, for all are missing now
		// What is held stays held while its place cannot be read, and waits for nothing else.
		for range 5 {
			time.Sleep(30 * time.Second)
			b.replace(rejections(bad("f00", "", "not YAML")))
		}
		b.standing(8, 9)
		// A version that is rejected is there.
		b.replace(rejections(bad("f00", "s00", "no ports")))
		b.standing(8, 0)
		if rec, _ := b.store.memory.Get(stored(model.KindService, "s00")); rec.Status.Stale != "no ports" {
			t.Errorf("status of a rejected service %+v", rec.Status)
		}
	})
}

func TestFailureKeepsTheHold(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.list()
		b.fail("connection reset")
		b.inState(source.StateStale)
		b.standing(25, 30)
		time.Sleep(time.Hour)
		b.list()
		b.inState(source.StateHeld)
		b.standing(25, 30)
		began := time.Now()
		b.registry.answer(model.Listing{})
		time.Sleep(time.Minute)
		b.standing(0, 0)
		if got := b.registry.asked(began); !slices.Equal(got, []time.Duration{30 * time.Second}) {
			t.Errorf("asked after %v", got)
		}
	})
}

func TestNewProcessHoldsToo(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		first := connect(b.t, b.store)
		first.list()
		first.standing(25, 30)
		time.Sleep(time.Hour)

		next := connect(b.t, b.store)
		next.standing(25, 30)
		next.list(fleet(2, 20, 5)...) // beside so many others it would be ordinary
		next.standing(100, 12)
		time.Sleep(time.Minute)
		next.list(fleet(2, 20, 5)...)
		next.standing(100, 12)
		next.list(fleet(2, 20, 5)...)
		next.standing(90, 0)
	})
}

func TestOperatorReleases(t *testing.T) {
	release := func(b *bridge, want int) {
		b.t.Helper()
		if n, err := b.Release(b.t.Context()); n != want || err != nil {
			b.t.Errorf("released %d with %v, want %d", n, err, want)
		}
	}
	supervised(t, func(b *bridge) {
		release(b, 0)
		b.inState(source.StateListing)
		b.list(fleet(0, 5, 5)...)
		b.list(fleet(4, 5, 5)...)
		release(b, 24)
		b.standing(5, 0)
		b.inState(source.StateLive)
		commits := len(b.store.commits)
		b.list(fleet(4, 5, 5)...)
		if len(b.store.commits) != commits {
			t.Errorf("a listing after the release wrote %v", b.store.last())
		}
		release(b, 0)
		// What the supervisor remembers of places is right afterwards, too.
		b.replace(model.Listing{Places: []string{"f00"}, Objects: fleet(0, 1, 2)})
		b.standing(7, 0)

		b.list(fleet(0, 5, 5)...)
		b.list()
		b.fail("no route")
		release(b, 30)
		b.inState(source.StateStale)
		b.standing(0, 0)
	})
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.list()
		b.store.reject = 4
		if n, err := b.Release(b.t.Context()); n != 0 || err == nil {
			t.Errorf("released %d with %v although the store is away", n, err)
		}
		b.standing(25, 30)
		b.store.reject = 1
		release(b, 30)
	})
}

// What is back may have been reported in part, or not at all, so one listing is asked
// for.
func TestRegistryIsListedAfterARelease(t *testing.T) {
	released := func(b *bridge) (at time.Time) {
		b.t.Helper()
		b.list(fleet(0, 5, 5)...)
		b.list()
		time.Sleep(20 * time.Second)
		if n, err := b.Release(b.t.Context()); n != 30 || err != nil {
			b.t.Fatalf("released %d: %v", n, err)
		}
		return time.Now()
	}
	supervised(t, func(b *bridge) {
		at := released(b)
		b.registry.answer(model.Listing{Objects: fleet(0, 5, 5)})
		time.Sleep(time.Hour)
		b.standing(25, 0)
		if asked := b.registry.asked(at); !slices.Equal(asked, []time.Duration{time.Second}) {
			t.Errorf("it was asked to list after %v, want once after a second", asked)
		}
		if n, err := b.Release(b.t.Context()); n != 0 || err != nil {
			t.Errorf("released %d: %v", n, err)
		}
		time.Sleep(time.Hour)
		if asked := b.registry.asked(at); len(asked) != 1 {
			t.Errorf("it was asked to list after %v, though nothing was released", asked)
		}
	})
	supervised(t, func(b *bridge) { // until it has listed, and no change comes between
		at := released(b)
		time.Sleep(700 * time.Millisecond)
		b.change(model.Change{Upserts: fleet(7, 8, 1)})
		time.Sleep(2 * time.Second)
		if asked := b.registry.asked(at); !slices.Equal(asked, []time.Duration{time.Second, 2 * time.Second}) {
			t.Errorf("it was asked to list after %v", asked)
		}
	})
	supervised(t, func(b *bridge) { // the store took it, and said that it did not
		b.list(fleet(0, 5, 5)...)
		b.list()
		b.store.lost = 1
		if _, err := b.Release(b.t.Context()); err != nil {
			t.Fatal(err)
		}
		b.standing(0, 0)
		b.registry.answer(model.Listing{Objects: fleet(0, 5, 5)})
		time.Sleep(2 * time.Second)
		b.standing(25, 0)
	})
	supervised(t, func(b *bridge) { // a run lists first, so the next one is not asked
		b.list(fleet(0, 5, 5)...)
		b.list()
		b.fail("no route")
		at := time.Now()
		if _, err := b.Release(b.t.Context()); err != nil {
			t.Fatal(err)
		}
		b.list(fleet(0, 5, 5)...)
		time.Sleep(time.Hour)
		b.standing(25, 0)
		if asked := b.registry.asked(at); len(asked) > 0 {
			t.Errorf("it was asked to list after %v", asked)
		}
	})
}

func TestReleaseWaitsForACommitUnderWay(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(fleet(0, 5, 5)...)
		b.list()
		b.store.before = func(model.Commit) {
			b.store.before = nil
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
			defer cancel()
			if _, err := b.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("released during a commit, or failed with %v", err)
			}
		}
		b.registry.calls <- func(ctx context.Context, sink source.Sink) error {
			return sink.Replace(ctx, model.Listing{Objects: fleet(7, 8, 5)})
		}
		time.Sleep(2 * time.Second)
		b.standing(30, 30)
	})
}

func TestSelectedWorkloadsAreEndpoints(t *testing.T) {
	labels := func(app string) model.Labels { return model.MapOf(map[string]string{"app": app}) }
	selecting := func(name, app string) model.Object {
		o := service(name, "services")
		o.Record.Spec = model.Service{Hosts: model.ListOf(name + ".example.com"), WorkloadSelector: labels(app)}
		return o
	}
	workloads := func(app string, n int) (objects []model.Object) {
		for i := range n {
			o := workload(fmt.Sprintf("%s-%d", app, i), app)
			o.Record.Spec = model.Workload{Endpoint: model.Endpoint{Address: "10.1.1.1", Labels: labels(app)}}
			objects = append(objects, o)
		}
		return objects
	}
	services := []model.Object{selecting("a", "a"), selecting("b", "b")}
	before := slices.Concat(services, fleet(0, 10, 10), workloads("a", 11), workloads("b", 10), workloads("unselected", 12))
	supervised(t, func(b *bridge) {
		b.list(before...)
		b.standing(133, 0)
		b.list(append(services, fleet(0, 10, 10)...)...)
		b.standing(111, 11)
		b.list(fleet(0, 10, 10)...)
		b.standing(111, 12)
		holds := heldIn(b.store)
		for rec := range b.store.List(model.Filter{Source: "reg"}) {
			if _, held := holds.Of(rec.Ref, rec.Owner); held != (rec.Name == "a" || strings.HasPrefix(rec.Name, "a-")) {
				t.Errorf("%s: held %t", rec.Ref, held)
			}
		}
	})
	supervised(t, func(b *bridge) {
		b.list(before...)
		b.replace(model.Listing{Places: []string{"a", "b"}, Objects: workloads("a", 1)})
		b.standing(113, 0)
	})
}
