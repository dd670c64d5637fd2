package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// metered gives one permit a second.
func metered() func(time.Time) (bool, time.Time) {
	var next time.Time
	return func(now time.Time) (bool, time.Time) {
		if now.Before(next) {
			return false, next
		}
		next = now.Add(time.Second)
		return true, time.Time{}
	}
}

// once needs one permit, which it does not have at its first turn.
func (s *system) once(urgency Urgency) func(context.Context) (Outcome, error) {
	return func(ctx context.Context) (Outcome, error) {
		if PermitOf(ctx).Given {
			return Outcome{}, nil
		}
		return Outcome{Throttled: true, Urgency: urgency}, nil
	}
}

// With less room than there is to do, what is urgent goes first, a live change
// before one of the start, and every key has its turn.
func TestWhatIsUrgentIsPermittedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{does: map[string]func(context.Context) (Outcome, error){}}
		var initial []string
		for i := range 100 {
			key := fmt.Sprintf("start-%03d", i)
			initial = append(initial, key)
			s.does[key] = s.once(Urgent)
		}
		s.does["live"], s.does["removal"], s.does["label"] = s.once(Urgent), s.once(MostUrgent), s.once(Routine)
		c := started(t, s, func(c *Config[string]) {
			c.Permit, c.Keys = metered(), func() []string { return initial }
		})
		time.Sleep(10500 * time.Millisecond)
		began := time.Now()
		c.Add(High, "label", "live", "removal")
		synctest.Wait()
		status := c.Status()
		if got := status.Throttled; got[MostUrgent] != 1 || got[Routine] != 1 || got[Urgent] < 80 || !status.ThrottledSince.Before(began) {
			t.Errorf("throttled %v since %s", got, status.ThrottledSince)
		}
		time.Sleep(3 * time.Second) // of which one permit may be for the key that has waited longest
		done := strings.Fields(s.done())
		twice := func(key string) int {
			first := slices.Index(done, key)
			return first + 1 + slices.Index(done[first+1:], key)
		}
		if !slices.Contains(done[slices.Index(done, "removal")+1:], "removal") || twice("live") < twice("removal") {
			t.Errorf("reconciled %v", done)
		}
		time.Sleep(3 * time.Minute)
		if got := c.Status(); got.Length != 0 {
			t.Errorf("%d keys are left, throttled %v", got.Length, got.Throttled)
		}
	})
}

// However many removals come, a label is written in the end.
func TestUrgencyStarvesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue[int]()
		now := time.Unix(0, 0)
		throttled := func(key int, u Urgency) {
			q.add(key, High, now)
			for {
				got, ok, _ := q.next(now)
				if !ok {
					t.Fatalf("key %d is not there to be planned", key)
				}
				if got == key {
					q.done(key, Outcome{Throttled: true, Urgency: u}, nil, 0, now)
					return
				}
				t.Fatalf("%d came instead of %d", got, key)
			}
		}
		before := rapid.IntRange(0, 20).Draw(t, "keys that wait longer")
		for i := range before {
			throttled(i, MostUrgent)
			now = now.Add(time.Millisecond)
		}
		const label = -1
		throttled(label, Routine)
		for i := range oldestFirst * (before + 1) {
			now = now.Add(time.Millisecond)
			throttled(1000+i, MostUrgent)
			if rapid.Bool().Draw(t, "the label changes once more") {
				throttled(label, Routine)
			}
			key, permit := q.admit()
			if !permit.Given {
				t.Fatal("admitted without a permit")
			}
			if key == label {
				return
			}
			q.done(key, Outcome{}, nil, 0, now)
		}
		t.Fatalf("with %d keys before it, it had none of %d permits", before, oldestFirst*(before+1))
	})
}

// A key that has written a part waits for the view, and then for a permit.
func TestRestOfAKeyWaitsForTheViewFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, func(c *Config[string]) { c.Permit = metered() })
		shown := make(chan struct{})
		turns := 0
		s.set("a", func(context.Context) (Outcome, error) {
			if turns++; turns > 1 {
				return Outcome{}, nil
			}
			return Outcome{Throttled: true, Await: func() bool {
				select {
				case <-shown:
					return true
				default:
					return false
				}
			}}, nil
		})
		c.Add(High, "a")
		time.Sleep(5 * time.Second)
		if s.done() != "a" {
			t.Fatalf("reconciled %q before the view had the first part", s.done())
		}
		close(shown)
		c.Observed("a")
		time.Sleep(2 * time.Second)
		if s.done() != "a a" || c.Status().Length != 0 {
			t.Errorf("reconciled %q, status %+v", s.done(), c.Status())
		}
	})
}

// What is wrong with the other system ends for all keys at once, and none of
// them stays away for long after that.
func TestTemporaryFailureIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, nil)
		s.set("a", func(context.Context) (Outcome, error) {
			return Outcome{}, fmt.Errorf("a: %w", &Temporary{errors.New("away")})
		})
		s.set("b", func(context.Context) (Outcome, error) { return Outcome{}, &Retry{errors.New("at once"), 0} })
		c.Add(High, "a", "b")
		time.Sleep(10 * time.Minute)
		if tries := strings.Count(s.done(), "b"); tries > 10*60*8+1 {
			t.Errorf("%d tries of what is to be tried at once", tries)
		}
		before := strings.Count(s.done(), "a")
		s.set("a", nil)
		time.Sleep(3 * time.Second)
		if after := strings.Count(s.done(), "a"); after == before {
			t.Error("not tried within 3 s of the end")
		}
	})
}
