package push

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/push/world"
)

func TestDue(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	tests := []struct {
		name        string
		debounce    world.Debounce
		first, last float64
		events      int
		want        float64
	}{
		{"nothing is delayed by default", world.Debounce{}, 3, 3, 1, 3},
		{"a burst is over when it was quiet", world.Debounce{Quiet: time.Second}, 0, 3, 5, 4},
		{"a single change waits for quiet", world.Debounce{Quiet: time.Second, Max: 10 * time.Second}, 3, 3, 1, 4},
		{"a long burst ends at its bound", world.Debounce{Quiet: time.Second, Max: 10 * time.Second}, 0, 9.5, 20, 10},
		{"without a bound it does not", world.Debounce{Quiet: time.Second}, 0, 60, 200, 61},
		{"enough changes end the wait", world.Debounce{Quiet: time.Second, Events: 3}, 0, 0.5, 3, 0.5},
		{"fewer do not", world.Debounce{Quiet: time.Second, Events: 3}, 0, 0.5, 2, 1.5},
		{"a bound below quiet counts", world.Debounce{Quiet: time.Minute, Max: time.Second}, 0, 0, 1, 1},
		{"what comes past the bound is late already", world.Debounce{Quiet: time.Second, Max: 2 * time.Second}, 0, 5, 2, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.debounce.Due(at(test.first), at(test.last), test.events); !got.Equal(at(test.want)) {
				t.Errorf("due after %v, want %vs", got.Sub(start), test.want)
			}
		})
	}
}

func drawDebounce(t *rapid.T) world.Debounce {
	seconds := rapid.IntRange(0, 5)
	return world.Debounce{
		Quiet:  time.Duration(seconds.Draw(t, "quiet")) * time.Second,
		Max:    time.Duration(seconds.Draw(t, "max")) * time.Second,
		Events: rapid.IntRange(0, 4).Draw(t, "events"),
	}
}

// A burst of any shape is delivered neither too late nor too early, and the
// decision for each change needs nothing but the times of the first and the last.
func TestDueIsWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, first := rapid.Custom(drawDebounce).Draw(t, "debounce"), time.Unix(0, 0)
		last := first.Add(time.Duration(rapid.IntRange(0, 10_000).Draw(t, "ms")) * time.Millisecond)
		events := rapid.IntRange(1, 6).Draw(t, "so many")
		due := d.Due(first, last, events)
		enough := d.Events > 0 && events >= d.Events
		switch bound := first.Add(d.Max); {
		case enough && !due.Equal(last):
			t.Fatalf("%d events came, and it is due %v later", events, due.Sub(last))
		case enough:
		case d.Max > 0 && due.After(bound):
			t.Fatalf("due %v after the bound", due.Sub(bound))
		case due.Before(last.Add(d.Quiet)) && !(d.Max > 0 && due.Equal(bound)):
			t.Fatalf("due %v after the last change, which is not quiet and not the bound", due.Sub(last))
		case due.Before(first):
			t.Fatal("due before anything happened")
		}
	})
}

// However steady a trickle, no change waits longer than the bound.
func TestTrickleDoesNotStarve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Custom(drawDebounce).Draw(t, "debounce")
		if d.Max == 0 {
			d.Max = time.Second
		}
		gaps := rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 50).Draw(t, "gaps")
		now := time.Unix(0, 0)
		var first, due time.Time // zero while nothing waits
		waiting := 0
		for _, gap := range gaps {
			now = now.Add(time.Duration(gap) * time.Millisecond)
			if waiting > 0 && !due.After(now) { // delivered before this change came
				if late := due.Sub(first); late > d.Max {
					t.Fatalf("a change waited %v, longer than %v", late, d.Max)
				}
				waiting = 0
			}
			if waiting == 0 {
				first = now
			}
			waiting++
			due = d.Due(first, now, waiting)
		}
	})
}

func TestEngineDelivers(t *testing.T) {
	type delivery struct {
		After time.Duration
		What  string
	}
	tests := []struct {
		name     string
		debounce world.Debounce
		every    time.Duration // between changes
		changes  int
		want     []delivery
	}{
		{"at once by default", world.Debounce{}, time.Second, 3, []delivery{{0, "1"}, {time.Second, "2"}, {2 * time.Second, "3"}}},
		{"a burst when it is over", world.Debounce{Quiet: time.Second}, 500 * time.Millisecond, 5, []delivery{{3 * time.Second, "5"}}},
		{
			"a trickle at its bound",
			world.Debounce{Quiet: time.Second, Max: 2 * time.Second},
			300 * time.Millisecond, 10,
			// The change at 2.1 s begins the next burst, which ends 1 s after the last at 2.7 s.
			[]delivery{{2 * time.Second, "7"}, {3700 * time.Millisecond, "10"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := runTypes(t, Config{}, delayed(test.debounce))
				e.publish(fakeWorld{}.with(parts, "a", "0"), parts)
				<-e.Primed()
				s := connected(e, world.Delta, parts, "a")
				s.ack(s.receive())
				start := time.Now()
				go func() {
					for i := range test.changes {
						e.publish(fakeWorld{}.with(parts, "a", strconv.Itoa(i+1)), parts, "a")
						time.Sleep(test.every)
					}
				}()
				var got []delivery
				for len(got) < len(test.want) {
					r := s.receive()
					s.ack(r)
					got = append(got, delivery{time.Since(start), contentsOf(r)[0]})
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("deliveries (-want +got):\n%s", diff)
				}
				time.Sleep(time.Minute)
				select {
				case r := <-s.Out():
					t.Errorf("one more delivery, of %v", contentsOf(r))
				default:
				}
			})
		})
	}
}

// Enough changes end the wait; the same resource counts once.
func TestEnoughChangesEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := runTypes(t, Config{}, delayed(world.Debounce{Quiet: time.Hour, Events: 3}))
		w := many(3)
		e.publish(w, parts)
		time.Sleep(time.Hour)
		<-e.Primed()
		s := connected(e, world.Delta, parts, namesOf(3)...)
		s.ack(s.receive())
		start := time.Now()
		for _, i := range []int{0, 0, 1, 1} {
			w = w.with(parts, nameAt(i), "second")
			e.publish(w, parts, nameAt(i))
			time.Sleep(time.Second)
		}
		e.publish(w.with(parts, nameAt(2), "second"), parts, nameAt(2))
		if r := s.receive(); len(r.Resources) != 3 || time.Since(start) != 4*time.Second {
			t.Errorf("%d resources after %v", len(r.Resources), time.Since(start))
		}
	})
}
