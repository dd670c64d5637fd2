package controller

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens to it, the queue loses no change: every key is reconciled
// after the last time it was added, and never twice at once.
func TestQueueLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue[int]()
		now := time.Unix(0, 0)
		added, taken := map[int]int{}, map[int]int{} // by step
		running := map[int]bool{}
		key := rapid.IntRange(0, 5)
		step := 0
		start := func() bool {
			k, ok, _ := q.next(now)
			if !ok {
				return false
			}
			if running[k] {
				t.Fatalf("key %d is reconciled twice at once", k)
			}
			running[k], taken[k] = true, step
			return true
		}
		finish := func(k int, o Outcome, err error) {
			delete(running, k)
			q.done(k, o, err, rapid.Float64Range(0, 0.99).Draw(t, "random"), now)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			step++
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				k := key.Draw(t, "added")
				added[k] = step
				q.add(k, rapid.SampledFrom([]Priority{Low, High}).Draw(t, "priority"), now)
			case 1:
				start()
			case 2:
				now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			case 3:
				for k := range running {
					o, err := Outcome{}, error(nil)
					switch rapid.IntRange(0, 2).Draw(t, "outcome") {
					case 0:
						err = errors.New("no")
					case 1:
						o.Await = func() bool { return true }
					}
					finish(k, o, err)
					break
				}
			case 4:
				k := key.Draw(t, "seen")
				if await, ticket := q.awaited(k); await != nil {
					q.seen(k, ticket)
				}
			}
		}
		for range 100 { // from here on all goes well
			step++
			for k := range running {
				finish(k, Outcome{}, nil)
			}
			for start() {
			}
			now = now.Add(time.Second)
		}
		for k, at := range added {
			if taken[k] < at {
				t.Fatalf("key %d was added at step %d and last reconciled at %d", k, at, taken[k])
			}
		}
		if len(q.entries) != 0 {
			t.Fatalf("%d keys are left although all went well", len(q.entries))
		}
	})
}
