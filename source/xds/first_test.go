package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/source"
)

// live waits until the source is live, and returns what is stored by then. Until then what
// is stored may only grow.
func (r *rig) live(within time.Duration) string {
	r.Helper()
	begun, before := time.Now(), r.stored()
	for time.Since(begun) < within {
		if r.Status().State == source.StateLive {
			return r.stored()
		}
		synctest.Wait()
		if now := r.stored(); len(now) < len(before) {
			r.Fatalf("%s after its beginning, and not live, it has lost something:\n%s\n\nbefore:\n%s", time.Since(begun), now, before)
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.is(source.StateLive, "")
	return ""
}

// services has the peer serve so many services whose names begin so.
func (r *rig) services(n int, prefix string) (lines []string) {
	r.change(func() {
		for i := range n {
			name := fmt.Sprintf("shop/%s%04d", prefix, i)
			r.set("ServiceEntry", name, service(name, "10.0.0.1"))
			lines = append(lines, name+" 10.0.0.1")
		}
	})
	return lines
}

// However far away a server is that cuts its first state, the source is not live before
// it has all of it, and a restart takes nothing away, not for a moment.
func TestFirstStateFromFarAwayIsWhole(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]manner{
		"marked":                    {chunk: 2, marks: true},
		"not marked":                {chunk: 2},
		"not marked, not resumed":   {chunk: 2, repeats: true},
		"marked, and not in pieces": {marks: true},
	} {
		for _, delay := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " ", delay), func(t *testing.T) {
				m.roundTrip = delay
				bubble(t, m, func(r *rig) {
					all := strings.Join(r.services(25, "s"), "\n")
					r.begin()
					if got := r.live(time.Minute); got != all {
						r.Errorf("live with:\n%s", got)
					}
					r.stop()
					revision := r.store.At()
					r.begin()
					if r.live(time.Minute) != all || r.store.At() != revision {
						r.Errorf("a restart writes, from %v to %v:\n%s", revision, r.store.At(), r.stored())
					}
					r.stop()
					more := r.services(6, "t")
					r.remove("ServiceEntry", "shop/s0007")
					r.begin()
					want := strings.Replace(all, "shop/s0007 10.0.0.1\n", "", 1) + "\n" + strings.Join(more, "\n")
					if got := r.live(time.Minute); got != want {
						r.Errorf("live with what has changed meanwhile:\n%s", got)
					}
				})
			})
		}
	}
}

// A marked end is known at once: no silence is waited for.
func TestMarkedEndIsTheEnd(t *testing.T) {
	bubble(t, manner{chunk: 2, marks: true}, func(r *rig) {
		r.services(4, "s")
		r.begin()
		r.pass(100 * time.Millisecond)
		r.is(source.StateLive, "")
		if got := r.seen()[0].metadata["ISTHMUS_MARK_FIRST_STATE"]; got != "true" {
			r.Errorf("the node's metadata asks for the mark by %q", got)
		}
	})
}

// A server that marks its first state is waited for, however long it pauses. One that says
// no more is not listed, which the state says, and what has come is not sent again.
func TestMarkedEndIsWaitedFor(t *testing.T) {
	t.Parallel()
	t.Run("it pauses", func(t *testing.T) {
		bubble(t, manner{chunk: 2, marks: true, pause: 40 * time.Second}, func(r *rig) {
			all := strings.Join(r.services(5, "s"), "\n")
			r.begin()
			if got := r.live(5 * time.Minute); got != all {
				r.Errorf("live with:\n%s", got)
			}
		})
	})
	t.Run("it stops", func(t *testing.T) {
		bubble(t, manner{chunk: 2, marks: true, pause: time.Hour}, func(r *rig) {
			all := r.services(3, "s")
			r.begin()
			r.pass(59 * time.Second)
			r.is(source.StateListing, "")
			said := false
			for range 1000 { // until it has connected again
				r.pass(2 * time.Millisecond)
				said = said || strings.Contains(r.Status().Reason, "the server sent an incomplete list of "+newer)
			}
			if !said {
				r.Error("nothing says why it is not live")
			}
			r.is(source.StateLive, "")
			r.wants(all...)
			if r.sentOn(2, newer) != 1 {
				r.Errorf("%d resources were sent on the second stream", r.sentOn(2, newer))
			}
		})
	})
}

// A server that marks nothing may pause between two answers of one first state. What it has
// not spoken of yet stays, whether or not it resumes.
func TestServerThatPausesTakesNothingAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		m    manner
		live bool // what is live is whole
	}{
		"for 2s":                   {manner{chunk: 2, pause: 2 * time.Second}, false},
		"for 2s, not resumed":      {manner{chunk: 2, pause: 2 * time.Second, repeats: true}, true},
		"for 9s, not resumed":      {manner{chunk: 2, pause: 9 * time.Second, repeats: true}, true},
		"for a minute":             {manner{chunk: 2, pause: time.Minute}, false},
		"for a minute, one by one": {manner{chunk: 1, pause: time.Minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := test.m
			m.pause = 0
			bubble(t, m, func(r *rig) {
				all := r.services(9, "s")
				r.mirror()
				r.wants(all...)
				r.stop()
				r.change(func() { r.pause = test.m.pause })
				r.begin()
				for range 200 { // longer than all of it takes
					r.pass(3 * time.Second)
					got := strings.ReplaceAll(r.stored(), " (stale)", "")
					if got != strings.Join(all, "\n") {
						r.Fatalf("stored:\n%s", got)
					}
					if test.live && r.Status().State == source.StateLive && got != r.stored() {
						r.Errorf("live with:\n%s", r.stored())
					}
				}
				r.is(source.StateLive, "")
				r.rejects()
				r.wants(all...)
			})
		})
	}
	// A process that knows nothing is not live with a part.
	t.Run("nothing is known", func(t *testing.T) {
		bubble(t, manner{chunk: 4, pause: 2 * time.Second}, func(r *rig) {
			all := strings.Join(r.services(9, "s"), "\n")
			r.begin()
			if got := r.live(time.Minute); got != all {
				r.Errorf("live with:\n%s", got)
			}
		})
	})
}

// An answer of very many names is no end, as one of very many bytes is none.
func TestAnswerOfManyNamesIsNoEnd(t *testing.T) {
	bubble(t, manner{chunk: 1000}, func(r *rig) {
		r.services(1500, "s")
		r.mirror("ServiceEntry")
		r.is(source.StateLive, "")
		r.cut()
		r.change(func() { r.pause = 3 * time.Second })
		r.services(1500, "t")
		r.pass(time.Millisecond)
		r.is(source.StateStale, "")
		for range 600 {
			if r.pass(100 * time.Millisecond); r.Status().State == source.StateLive {
				break
			}
		}
		r.is(source.StateLive, "")
		if n := r.Status().Services; n != 3000 {
			r.Errorf("live with %d of 3000 services", n)
		}
	})
}

// The silence that is waited for follows the round trip: the next of many small answers may
// take longer than silence is waited for of a server nearby.
func TestSilenceFollowsTheRoundTrip(t *testing.T) {
	bubble(t, manner{chunk: 2, roundTrip: 2500 * time.Millisecond}, func(r *rig) {
		all := r.services(5, "s")
		r.begin()
		r.live(time.Minute)
		r.cut()
		all = append(all, r.services(9, "t")...)
		r.pass(time.Millisecond)
		r.is(source.StateStale, "")
		if got := r.live(2 * time.Minute); got != strings.Join(all, "\n") {
			r.Errorf("live with:\n%s", got)
		}
	})
}

// A server some source of which is not listed yet says of what it lacks neither that it is
// there nor that it is gone. That stays until it does, and all else goes on.
func TestWhatTheServerDoesNotKnowYetStays(t *testing.T) {
	bubble(t, manner{marks: true}, func(r *rig) {
		all := r.services(5, "s")
		r.mirror()
		r.wants(all...)
		r.stop()
		r.change(func() { r.withholds = true })
		r.remove("ServiceEntry", "shop/s0003")
		r.remove("ServiceEntry", "shop/s0004")
		r.mirror()
		r.is(source.StateLive, "")
		r.wants(append(slices.Clone(all[:3]), all[3]+" (stale)", all[4]+" (stale)")...)
		r.rejects("ServiceEntry shop/s0003 … has not said yet", "ServiceEntry shop/s0004 … has not said yet")
		r.serve("shop/s0000", "10.0.0.9")
		r.pass(time.Second)
		r.put("ServiceEntry", "shop/s0003", service("shop/s0003", "10.0.0.1"))
		r.pass(time.Second)
		r.wants("shop/s0000 10.0.0.9", all[1], all[2], all[3], all[4]+" (stale)")
		r.change(func() { r.withholds = false })
		r.pass(time.Second)
		r.wants("shop/s0000 10.0.0.9", all[1], all[2], all[3])
		r.rejects()
		r.is(source.StateLive, "")
	})
}

// A server that gives no versions is not resumed. What its marked first state lacks is gone.
func TestMarkedFirstStateWithoutVersionsIsEverything(t *testing.T) {
	bubble(t, manner{marks: true, noVersions: true}, func(r *rig) {
		all := r.services(5, "s")
		r.mirror()
		r.cut()
		r.remove("ServiceEntry", "shop/s0004")
		r.pass(10 * time.Second)
		r.is(source.StateLive, "")
		r.rejects()
		r.wants(all[:4]...)
	})
}

// Services that come as the older type alone, and cannot be used, are no empty registry.
func TestOlderTypeThatWasNACKedIsNotEmpty(t *testing.T) {
	for _, noDelta := range []bool{false, true} {
		t.Run(fmt.Sprintf("delta %v", !noDelta), func(t *testing.T) {
			bubble(t, manner{noDelta: noDelta, versions: []string{"v1alpha3"}}, func(r *rig) {
				r.put("ServiceEntry", "shop/cart", encode(&networking.ServiceEntry{}))
				r.begin()
				r.pass(30 * time.Second)
				r.is(source.StateListing, "no resource of "+older+" from the server is valid")
				r.serve("shop/cart", "10.0.0.1")
				r.pass(time.Minute)
				r.is(source.StateLive, "")
				r.wants("shop/cart 10.0.0.1")
			})
		})
	}
}

// As long as one type has brought no service, the other is waited for. The state names
// it, and what to do.
func TestSilentTypeIsWaitedForWhileThereIsNoService(t *testing.T) {
	for _, noDelta := range []bool{false, true} {
		t.Run(fmt.Sprintf("delta %v", !noDelta), func(t *testing.T) {
			bubble(t, manner{noDelta: noDelta, unknown: []string{older}}, func(r *rig) {
				r.put("Sidecar", "shop/default", sidecar("shop/default"))
				r.begin()
				r.pass(2 * time.Minute)
				r.is(source.StateListing, "has not answered for "+older)
				r.is(source.StateListing, "types: ["+newer+", …]")
				r.wants()
				r.serve("shop/cart", "10.0.0.1")
				r.pass(2 * time.Minute)
				r.is(source.StateLive, "")
				r.wants("shop/cart 10.0.0.1", "Scope shop/default")
			})
		})
	}
}

// A kind that is configured by the name of a type is asked for by that alone.
func TestTypeThatIsNamedIsAskedForAlone(t *testing.T) {
	variants(t, func(r *rig) {
		r.mirror(newer)
		r.is(source.StateLive, "")
		if slices.ContainsFunc(r.seen(), func(q request) bool { return q.url != newer }) {
			r.Errorf("it was asked for %+v", r.seen())
		}
	})
}

// What is stored of services that may come as a silent type stays while the others of the
// kind come.
func TestWhatIsStoredOfASilentTypeStays(t *testing.T) {
	bubble(t, manner{versions: []string{"v1alpha3"}}, func(r *rig) {
		all := r.services(3, "s")
		r.mirror()
		r.wants(all...)
		r.stop()
		r.change(func() { r.versions, r.unknown, r.resources = nil, []string{older}, map[string]map[string]*anypb.Any{} })
		r.begin()
		r.pass(time.Second)
		r.serve("shop/new", "10.0.0.1") // after the newer type was answered with nothing
		r.pass(30 * time.Second)
		r.is(source.StateLive, "")
		r.wants("shop/new 10.0.0.1", all[0]+" (stale)", all[1]+" (stale)", all[2]+" (stale)")
	})
}

// Services that are late are waited for, in whatever order the kinds are configured.
func TestLateServicesAreNotEmpty(t *testing.T) {
	for _, types := range [][]string{nil, {"Sidecar", "ServiceEntry"}} {
		for _, noDelta := range []bool{false, true} {
			t.Run(fmt.Sprint(types, " delta ", !noDelta), func(t *testing.T) {
				bubble(t, manner{noDelta: noDelta, late: 12 * time.Second}, func(r *rig) {
					r.put("Sidecar", "shop/default", sidecar("shop/default"))
					r.serve("shop/cart", "10.0.0.1")
					r.begin(types...)
					if got := r.live(2 * time.Minute); !strings.Contains(got, "shop/cart") {
						r.Errorf("live with %q", got)
					}
				})
			})
		}
	}
}
