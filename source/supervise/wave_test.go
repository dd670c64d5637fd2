package supervise_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// addressed returns services that each have so many endpoints, at addresses of their own.
func addressed(services, endpoints int) (objects []model.Object) {
	for i := range services {
		var addresses []string
		for j := range endpoints {
			addresses = append(addresses, fmt.Sprintf("10.%d.0.%d", i, j))
		}
		objects = append(objects, service(fmt.Sprintf("s%02d", i), "f", addresses...))
	}
	return objects
}

// without returns services without their first endpoints.
func without(objects []model.Object, endpoints int) (less []model.Object) {
	for _, o := range objects {
		o.Owned = o.Owned[min(endpoints, len(o.Owned)):]
		less = append(less, o)
	}
	return less
}

// Leases run out over 30 s, and the registry is listed every 2 s: each listing lacks
// little, and all of them nearly everything.
func TestDropInWavesIsHeld(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := addressed(50, 10)
		b.list(all...)
		for i := range 15 {
			time.Sleep(2 * time.Second)
			var left []model.Object
			for j, o := range all { // 30 of 500 are left at last
				left = append(left, without([]model.Object{o}, 9*(i+1)/15+(j%5)/3*((i+1)/15))...)
			}
			b.list(left...)
		}
		if st := b.Status(); st.Endpoints != 500 || st.Held != 470 || st.State != source.StateHeld {
			t.Errorf("%d endpoints, %d held: %s", st.Endpoints, st.Held, st.Reason)
		}
		mentions(t, b.Status().Reason, "470 of 500 endpoints disappeared within 1m0s", "isthmus sources release reg")
		b.list(all...)
		b.standing(500, 0)
		b.inState(source.StateLive)
	})
}

// A service that is emptied in waves comes back with its endpoints, and so does one
// that was removed before the last of them.
func TestServiceEmptiedInWavesIsHeldWhole(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := append(addressed(1, 20), fleet(1, 40, 5)...)
		for i := range 4 {
			b.list(append(without(all[:1], 5*i), all[1:]...)...)
			time.Sleep(5 * time.Second)
		}
		b.standing(200, 0)
		b.list(all[1:]...)
		b.standing(215, 21)
		hold, _ := b.heldFor(model.KindService, "s00")
		mentions(t, hold.Reason, "all 20 endpoints of Service ns/s00")
	})
	supervised(t, func(b *bridge) { // as a part of its source
		all := addressed(10, 10)
		b.list(all...)
		b.list(append(without(all[:4], 10), all[4:]...)...) // each of them empty
		time.Sleep(time.Second)
		b.list(all[4:]...) // and gone
		b.standing(60, 0)
		time.Sleep(time.Second)
		b.list(without(all[4:], 2)...)
		b.standing(100, 56)
	})
}

// What went longer ago than the losses add up stays away.
func TestWavesAddUpForAsLongAsAHold(t *testing.T) {
	for gap, held := range map[time.Duration]int{20 * time.Second: 40, 31 * time.Second: 0} {
		supervised(t, func(b *bridge) { // 10 of 100 each time
			all := addressed(10, 10)
			for i := range 6 {
				b.list(without(all, i)...)
				time.Sleep(gap)
			}
			b.list(without(all, 6)...) // of 80 at most within a minute, or of 60
			if st := b.Status(); st.Held != held {
				t.Errorf("every %s: %d are held: %s", gap, st.Held, st.Reason)
			}
		})
	}
	supervised(t, func(b *bridge) { // 40 in the last minute, and 10 before
		all := addressed(10, 10)
		for i := range 2 {
			b.list(without(all, i)...)
		}
		time.Sleep(time.Minute + 1)
		b.list(without(all, 5)...)
		b.standing(50, 0)
		b.list(without(all, 6)...)
		b.standing(90, 50)
	})
}

// A rolling deployment is no drop, whichever comes first of the old and the new.
func TestRolloutIsNoDrop(t *testing.T) {
	const instances, step = 24, 2
	at := func(generation, from, to int) (addresses []string) {
		for i := from; i < to; i++ {
			addresses = append(addresses, fmt.Sprintf("10.%d.0.%d", generation, i))
		}
		return addresses
	}
	for name, first := range map[string]bool{"the old go first": false, "the new come first": true} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				list := func(old, next int) {
					b.list(service("a", "f", append(at(1, old, instances), at(2, 0, next)...)...))
					if st := b.Status(); st.Held > 0 || st.Endpoints != instances-old+next {
						t.Errorf("%d are old and %d new, but %d are stored: %s", instances-old, next, st.Endpoints, st.Reason)
					}
					time.Sleep(2 * time.Second)
				}
				list(0, 0)
				for n := step; n <= instances; n += step { // in 12 steps
					if first {
						list(n-step, n)
					} else {
						list(n, n-step)
					}
					list(n, n)
				}
				b.standing(instances, 0)
			})
		})
	}
	for name, order := range map[string][2]int{"a quarter goes first": {1, 0}, "a quarter comes first": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				for i := range 4 {
					for _, half := range [][2]int{{i, i}, {i + order[0], i + order[1]}} {
						b.list(service("a", "f", append(at(1, 10*half[0], 40), at(2, 0, 10*half[1])...)...))
						if st := b.Status(); st.Held > 0 {
							t.Errorf("held: %s", st.Reason)
						}
					}
				}
				b.list(service("a", "f", at(2, 0, 40)...))
				b.standing(40, 0)
			})
		})
	}
}

// A registry that was restored from last week's backup has the same services.
func TestBackupOfLastWeekIsHeld(t *testing.T) {
	for edited, held := range map[bool]int{false: 100, true: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := connectWith(t, newLedger(), supervise.Config{Edited: edited})
			now, before := addressed(20, 5), renamed(addressed(20, 5))
			b.list(now...)
			b.list(before...)
			b.standing(100+held, held)
			if !edited {
				mentions(t, b.Status().Reason, "100 of 100 endpoints")
			}
			b.list(now...)
			b.standing(100, 0)
		})
	}
}

// A scale-down of more than half within a minute is held, as soon as it is as much, and
// said to be.
func TestAutoscalerIsHeld(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := addressed(1, 100)
		b.list(all...)
		for i := range 6 {
			time.Sleep(10 * time.Second)
			b.list(without(all, 10*(i+1))...)
		}
		b.standing(100, 60)
		mentions(t, b.Status().Reason, "60 of 100 endpoints disappeared within 1m0s, of Service ns/s00", "isthmus sources release reg")
		b.registry.answer(model.Listing{Objects: without(all, 60)})
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		b.standing(40, 0)
		b.inState(source.StateLive)
	})
}

// A registry that loses one service after another keeps nothing for ever: each goes
// after its own time.
func TestEditsThatGoOnWaitForThemselves(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := addressed(40, 5)
		b.list(all...)
		began := time.Now()
		b.list(all[20:]...)
		for i := range 15 {
			time.Sleep(20 * time.Second)
			b.list(all[21+i:]...)
			elapsed := time.Since(began)
			if st := b.Status(); elapsed >= time.Minute && st.Held > 6*3 {
				t.Errorf("after %s %d are held: %s", elapsed, st.Held, st.Reason)
			}
			for j, o := range all[20 : 21+i] {
				missing := time.Since(began) - time.Duration(j+1)*20*time.Second
				_, is := b.store.memory.Get(stored(model.KindService, o.Record.Name))
				if missing >= time.Minute && is {
					t.Errorf("%s is stored after it was missing for %s", o.Record.Name, missing)
				}
				if began.Add(20*time.Second*time.Duration(j+1)).Before(began.Add(time.Minute)) && missing < time.Minute && !is {
					t.Errorf("%s was held for %s", o.Record.Name, missing)
				}
			}
		}
	})
}

// A registry that lists another half each time loses nothing.
func TestOtherHalvesLoseNothing(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := addressed(10, 10)
		b.list(all...)
		for i := range 300 {
			time.Sleep(2 * time.Second)
			var half []model.Object
			for _, o := range all {
				var owned []model.Record
				for k, rec := range o.Owned {
					if (k*7+i*3)%10 < 5 {
						owned = append(owned, rec)
					}
				}
				o.Owned = owned
				half = append(half, o)
			}
			b.list(half...)
			if st := b.Status(); st.Endpoints != 100 {
				t.Fatalf("after %d listings %d endpoints are stored: %s", i, st.Endpoints, st.Reason)
			}
		}
	})
}

// What has a reason to be gone does not come back.
func TestWhatDoesNotComeBack(t *testing.T) {
	all := addressed(2, 50)
	stays := func(t *testing.T, b *bridge, name string, want bool) {
		t.Helper()
		if _, is := b.store.memory.Get(stored(model.KindEndpoint, name)); is != want {
			t.Errorf("%s is stored: %t", name, is)
		}
	}
	t.Run("reported", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(all...)
			b.list(append(without(all[:1], 2), all[1])...)
			b.change(dropped("s00", "10.0.0.0"))
			b.list(append(without(all[:1], 2), without(all[1:], 49)...)...)
			stays(t, b, "s00/10.0.0.0", false)
			stays(t, b, "s00/10.0.0.1", true)
			b.standing(99, 50)
		})
	})
	t.Run("reported, it is no loss", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(all...)
			b.list(append(without(all[:1], 10), all[1])...)
			for i := range 10 {
				b.change(dropped("s00", fmt.Sprint("10.0.0.", i)))
			}
			b.list(append(without(all[:1], 10), without(all[1:], 40)...)...) // 40 of 90
			b.standing(50, 0)
		})
	})
	t.Run("its service was reported", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(append(all, service("c", "f", "10.9.9.1", "10.9.9.2"))...)
			b.list(append(all, service("c", "f", "10.9.9.1"))...)
			b.change(model.Change{Upserts: []model.Object{service("c", "f", "10.9.9.1")}})
			b.list(append(without(all, 40), service("c", "f", "10.9.9.1"))...)
			stays(t, b, "c/10.9.9.2", false)
			b.standing(101, 80)
		})
	})
	t.Run("its place was removed", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(append(all, service("c", "g", "10.9.9.1", "10.9.9.2"))...)
			b.list(append(all, service("c", "g", "10.9.9.1"))...)
			b.replace(model.Listing{Places: []string{"g"}, Removed: []string{"g"}})
			b.list(without(all, 40)...)
			b.standing(100, 80)
		})
	})
	t.Run("replaced", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(all...)
			b.list(append(without(all[:1], 3), all[1])...)
			next := without(all[:1], 3)[0]
			next.Owned = append(slices.Clone(next.Owned), service("s00", "f", "10.7.0.1", "10.7.0.2").Owned...)
			b.list(next, all[1])
			b.list(append([]model.Object{next}, without(all[1:], 50)...)...)
			stays(t, b, "s00/10.0.0.0", true) // the last of them, in their order
			stays(t, b, "s00/10.0.0.1", false)
			stays(t, b, "s00/10.0.0.2", false)
		})
	})
	t.Run("replaced as the line is crossed", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(all...)
			b.list(append(without(all[:1], 3), all[1])...)
			next := without(all[:1], 3)[0]
			next.Owned = append(slices.Clone(next.Owned), service("s00", "f", "10.7.0.1", "10.7.0.2").Owned...)
			b.list(append([]model.Object{next}, without(all[1:], 50)...)...)
			b.standing(49+1+50, 51)
		})
	})
	t.Run("its address is another's", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(all...)
			b.list(append(without(all[:1], 2), all[1])...)
			other := service("c", "f", "10.0.0.0")
			b.list(append(without(all[:1], 2), all[1], other)...)
			b.list(append(without(all[:1], 2), append(without(all[1:], 50), other)...)...)
			stays(t, b, "s00/10.0.0.0", false)
			stays(t, b, "s00/10.0.0.1", true)
		})
	})
	t.Run("its address was another's all the while", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			other := service("c", "f", "10.0.0.0")
			b.list(append(slices.Clone(all), other)...)
			b.list(append(without(all[:1], 2), all[1], other)...)
			b.list(append(without(all[:1], 2), append(without(all[1:], 50), other)...)...)
			stays(t, b, "s00/10.0.0.0", true)
		})
	})
	t.Run("released", func(t *testing.T) {
		supervised(t, func(b *bridge) {
			b.list(all...)
			b.list(without(all, 40)...)
			b.standing(100, 80)
			if n, err := b.Release(b.t.Context()); n != 80 || err != nil {
				t.Fatal(n, err)
			}
			b.list(without(all, 44)...) // 8 of 20
			b.standing(12, 0)
			b.list(without(all, 45)...)
			b.standing(20, 10)
		})
	})
}

// The mark of a new process is what was restored. What went before, it does not know.
func TestRestartInTheMiddleOfAWave(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := addressed(10, 10)
		for i := range 5 {
			b.list(without(all, i)...)
			time.Sleep(time.Second)
		}
		b.standing(60, 0)
		next := connect(b.t, b.store)
		next.list(without(all, 6)...)
		next.standing(40, 0)
		time.Sleep(time.Second)
		next.list(without(all, 7)...)
		next.standing(60, 30)
	})
	supervised(t, func(b *bridge) { // and of a hold: what is held was there
		all := addressed(10, 10)
		b.list(all...)
		b.list(without(all, 6)...)
		b.standing(100, 60)
		time.Sleep(time.Hour)
		next := connect(b.t, b.store)
		next.list(without(all, 7)...)
		next.standing(100, 70)
	})
}

// A supervisor that takes over from another, as after a reload, goes on from its marks.
func TestSuccessorKnowsTheMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := addressed(10, 10)
		l := newLedger()
		before := connectWith(t, l, supervise.Config{})
		before.list(all...)
		before.list(without(all, 4)...)
		b := connectWith(t, l, supervise.Config{})
		if err := b.Succeed(t.Context(), before.Supervisor); err != nil {
			t.Fatal(err)
		}
		b.list(without(all, 5)...)
		b.standing(100, 50)
	})
}

// A drop of what is selected in waves is one, too.
func TestWorkloadsInWaves(t *testing.T) {
	supervised(t, func(b *bridge) {
		labels := model.MapOf(map[string]string{"app": "a"})
		selecting := service("a", "f")
		selecting.Record.Spec = model.Service{Hosts: model.ListOf("a.example.com"), WorkloadSelector: labels}
		var all []model.Object
		for i := range 20 {
			o := workload(fmt.Sprintf("w%02d", i), "f")
			o.Record.Spec = model.Workload{Endpoint: model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", i), Labels: labels}}
			all = append(all, o)
		}
		rest := append(fleet(1, 40, 5), selecting)
		for i := range 5 {
			b.list(append(slices.Clone(all[4*i:]), rest...)...)
			time.Sleep(time.Second)
		}
		b.standing(199, 0)
		b.list(rest...)
		b.standing(215, 20)
		b.list(append(slices.Clone(all), rest...)...)
		b.standing(215, 0)
	})
}
