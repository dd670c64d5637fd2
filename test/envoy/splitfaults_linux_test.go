package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSharesFailNoCallWhateverHappens has calls go on over every way while shares change,
// endpoints of both registries come and go, a registry is lost and returns, and a registry
// becomes empty and fills again. No call fails, and the shares are as asked.
func TestSharesFailNoCallWhateverHappens(t *testing.T) {
	t.Parallel()
	d := divide(t)
	random := rand.New(rand.NewPCG(*seed, 29))
	leavers := stormLeavers{t: t}
	t.Cleanup(leavers.wait)
	var callers []*sharedCallers
	for _, w := range d.ways() {
		c := newSharedCallers(t, w)
		c.beside = true
		await(t, w.name+" to be answered", c.isAnswered)
		callers = append(callers, c)
	}
	mustGet := func(percent, calls int) {
		t.Helper()
		var all sync.WaitGroup
		for _, c := range callers {
			all.Go(func() { c.mustGet(t, percent, calls) })
		}
		if all.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	load := startSharedLoad(t, d)
	started := 0
	grow := func(list *[]*backend, of string) {
		started++
		*list = append(*list, startBackend(t, of, fmt.Sprintf("%s-more-%d", of, started)))
	}
	// drop takes backends out of the registry. They stop after no Envoy has them.
	drop := func(list *[]*backend, n int) {
		t.Helper()
		gone := slices.Clone((*list)[:n])
		*list = slices.Delete(*list, 0, n)
		d.publish()
		for _, b := range gone {
			s := &stormBackend{endpoint{Address: b.Address}, b.Port, b.Stop}
			for _, p := range d.Proxies {
				for _, host := range []string{namedHost, bareHost} {
					if err := absent(t.Context(), p, host, s); err != nil {
						t.Fatal(err)
					}
				}
			}
			leavers.leave(d.Proxies, sharedHost, s)
		}
	}

	percent := 0
	for _, percent = range []int{50, 10, 1, 90} {
		d.Ask(percent)
		grow(&d.old, "old")
		grow(&d.next, "new")
		drop(&d.old, 1+random.IntN(len(d.old)-1)) // one stays at least
		drop(&d.next, 1+random.IntN(len(d.next)-1))
		mustGet(percent, 400)
	}

	away := d.Others.path + ".away"
	if err := os.Rename(d.Others.path, away); err != nil {
		t.Fatal(err)
	}
	await(t, "the registry to be lost", func() error {
		if d.Isthmuses[0].Rejected() == nil {
			return errors.New("all sources are live")
		}
		return nil
	})
	percent = 30
	d.Ask(percent)
	mustGet(percent, 400)
	if err := os.Rename(away, d.Others.path); err != nil {
		t.Fatal(err)
	}
	await(t, "the registry to be back", d.Isthmuses[0].Rejected)

	drop(&d.next, len(d.next))
	mustGet(0, 200)
	grow(&d.next, "new")
	grow(&d.next, "new")
	d.publish()
	mustGet(percent, 3000)
	load.stop()
	figures.add(t, "%d calls beside those that measure, none failed", load.calls.Load())
	d.MustBeSettled()
}

// sharedLoad is calls on every way that never stop.
type sharedLoad struct {
	calls atomic.Int64
	end   context.CancelFunc
	done  sync.WaitGroup
}

// startSharedLoad begins the calls. A failure fails the test.
func startSharedLoad(t *testing.T, d *divided) *sharedLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &sharedLoad{end: cancel}
	for _, w := range d.ways() {
		call := w.open(t)
		l.done.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				if _, err := call(t.Context()); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", w.name, err)
					return
				}
				l.calls.Add(1)
				<-tick.C
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

func (l *sharedLoad) stop() {
	l.end()
	l.done.Wait()
}
