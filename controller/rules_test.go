package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// system is what a controller under test writes to: it notes which key was
// reconciled when, and returns what it was set to.
type system struct {
	mu   sync.Mutex
	did  []string
	does map[string]func(ctx context.Context) (Outcome, error)
}

func (s *system) reconcile(ctx context.Context, key string) (Outcome, error) {
	s.mu.Lock()
	s.did = append(s.did, key)
	do := s.does[key]
	s.mu.Unlock()
	if do == nil {
		return Outcome{}, nil
	}
	return do(ctx)
}

func (s *system) done() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.did, " ")
}

func (s *system) set(key string, do func(context.Context) (Outcome, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.does[key] = do
}

// plain is the configuration of a controller of one worker, which begins without keys.
func plain(s *system) Config[string] {
	return Config[string]{
		Reconcile: s.reconcile, Workers: 1, Keys: func() []string { return nil },
		Permit: func(time.Time) (bool, time.Time) { return true, time.Time{} },
	}
}

// started runs a controller until the test ends. It returns once the gates that are open
// have been passed.
func started(t *testing.T, s *system, adapt func(*Config[string])) *Controller[string] {
	t.Helper()
	if s.does == nil {
		s.does = map[string]func(context.Context) (Outcome, error){}
	}
	config := plain(s)
	if adapt != nil {
		adapt(&config)
	}
	c := New(config)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return c
}

// Rule 1: nothing is reconciled, and no change counts, before everything that a reconciler
// depends on is known. The keys of the start are then asked for, once.
func TestNothingRunsBeforeEveryGateIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalog, listing := make(chan struct{}), make(chan struct{})
		s, asked, began := &system{}, 0, time.Now()
		c := started(t, s, func(c *Config[string]) {
			c.Gates = []Gate{{"the catalog", catalog}, {"the listing", listing}}
			c.Keys = func() []string { asked++; return []string{"a", "b"} }
		})
		c.Add(High, "b", "of a half-filled view")
		time.Sleep(time.Hour)
		status := c.Status()
		if diff := cmp.Diff([]string{"the catalog", "the listing"}, status.Missing); diff != "" || s.done() != "" || asked > 0 {
			t.Fatalf("reconciled %q; missing (-want +got):\n%s", s.done(), diff)
		}
		if status.Length != 0 || !status.MissingSince.Equal(began) {
			t.Errorf("%d keys wait, missing since %s", status.Length, status.MissingSince)
		}
		close(listing)
		synctest.Wait()
		if got := c.Status().Missing; !slices.Equal(got, []string{"the catalog"}) || s.done() != "" || asked > 0 {
			t.Fatalf("reconciled %q with %v missing", s.done(), got)
		}
		close(catalog)
		synctest.Wait()
		if status := c.Status(); s.done() != "a b" || asked != 1 || !status.MissingSince.IsZero() {
			t.Errorf("reconciled %q, want a b; the keys were asked for %d times; status %+v", s.done(), asked, status)
		}
	})
}

// Rule 1: a change that comes while the keys of the start are read is not lost.
func TestChangeWhileTheStartIsReadCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, read := &system{}, make(chan struct{})
		c := started(t, s, func(c *Config[string]) {
			c.Keys = func() []string { <-read; return []string{"a"} }
		})
		c.Add(High, "new")
		if got := c.Status().Missing; !slices.Equal(got, []string{"the list of keys"}) {
			t.Errorf("missing: %q", got)
		}
		close(read)
		synctest.Wait()
		if s.done() != "new a" {
			t.Errorf("reconciled %q", s.done())
		}
	})
}

// Rule 3: a key is in the queue once, and what comes while it is being
// reconciled leads to one more time, never to two at once.
func TestKeyIsQueuedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, func(c *Config[string]) { c.Workers = 4 })
		s.set("a", func(context.Context) (Outcome, error) { time.Sleep(time.Second); return Outcome{}, nil })
		c.Add(Low, "a")
		synctest.Wait()
		for range 100 {
			c.Add(High, "a")
		}
		if got := c.Status().Length; got != 1 {
			t.Errorf("%d keys in the queue, want 1", got)
		}
		time.Sleep(time.Minute)
		if s.done() != "a a" || c.Status().Length != 0 {
			t.Errorf("reconciled %q, with %d left", s.done(), c.Status().Length)
		}
	})
}

// Rule 5: a key that fails waits longer and longer, and holds up no other.
func TestFailingKeyBacksOffAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, nil)
		bad := errors.New("no")
		s.set("bad", func(context.Context) (Outcome, error) { return Outcome{}, bad })
		start := time.Now()
		c.Add(High, "bad", "good")
		synctest.Wait()
		if s.done() != "bad good" {
			t.Fatalf("reconciled %q", s.done())
		}
		time.Sleep(10 * time.Minute)
		tries := strings.Count(s.done(), "bad")
		if tries < 10*60/30 || tries > 60 {
			t.Errorf("%d tries in ten minutes, at a limit of 30 s", tries)
		}
		status := c.Status()
		if len(status.Failing) != 1 || status.Length != 1 || !status.Oldest.Equal(start) {
			t.Fatalf("status %+v", status)
		}
		f := status.Failing[0]
		if f.Key != "bad" || !errors.Is(f.Err, bad) || f.Tries != tries || !f.Since.Equal(start) || !f.Next.After(time.Now()) {
			t.Errorf("failure %+v", f)
		}
		s.set("bad", nil)
		time.Sleep(30 * time.Second)
		if status := c.Status(); len(status.Failing)+status.Length != 0 {
			t.Errorf("it went well, and status says %+v", status)
		}
	})
}

// What changes may be what was missing, so a failing key is tried at once then;
// unless the other system has said when.
func TestChangeCutsTheWaitShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, nil)
		s.set("bad", func(context.Context) (Outcome, error) { return Outcome{}, errors.New("no") })
		s.set("timed", func(context.Context) (Outcome, error) {
			return Outcome{}, &Retry{errors.New("overloaded"), 7 * time.Second}
		})
		c.Add(High, "bad", "timed")
		synctest.Wait()
		c.Add(Low, "bad", "timed")
		synctest.Wait()
		if s.done() != "bad timed" {
			t.Fatalf("reconciled %q: a look that nothing asked for is no reason", s.done())
		}
		c.Add(High, "bad", "timed")
		synctest.Wait()
		if s.done() != "bad timed bad" {
			t.Fatalf("reconciled %q", s.done())
		}
		time.Sleep(7*time.Second - time.Millisecond)
		if tries := strings.Count(s.done(), "timed"); tries != 1 {
			t.Errorf("%d tries before the time that was asked for", tries)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if tries := strings.Count(s.done(), "timed"); tries != 2 {
			t.Errorf("%d tries at the time that was asked for", tries)
		}
	})
}

// Rule 6: the end of a run is the end of all that it does.
func TestRunWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{does: map[string]func(context.Context) (Outcome, error){}}
		s.does["slow"] = func(ctx context.Context) (Outcome, error) {
			<-ctx.Done()
			time.Sleep(time.Minute) // it does not hurry
			return Outcome{}, ctx.Err()
		}
		config := plain(s)
		config.Workers, config.Keys = 3, func() []string { return []string{"slow"} }
		c := New(config)
		ctx, lose := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.Run(ctx) }()
		synctest.Wait()
		c.Add(High, "later")
		lose()
		lost := time.Now()
		<-ended
		if took := time.Since(lost); took != time.Minute {
			t.Errorf("the run ended after %s, before what it did", took)
		}
		c.Add(High, "never")
		time.Sleep(time.Hour)
		if strings.Contains(s.done(), "never") {
			t.Error("reconciled after the end")
		}
	})
}

// Rule 7: a live change overtakes what is looked at because of the start.
func TestLiveChangeOvertakesTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{does: map[string]func(context.Context) (Outcome, error){}}
		var initial []string
		for _, letter := range "abcdefghijklmnopqrstuvwxyz" {
			key := string(letter)
			initial = append(initial, key)
			s.does[key] = func(context.Context) (Outcome, error) { time.Sleep(time.Second); return Outcome{}, nil }
		}
		c := started(t, s, func(c *Config[string]) { c.Keys = func() []string { return initial } })
		time.Sleep(1500 * time.Millisecond) // b is under way, c was handed out
		c.Add(High, "new", "z")
		time.Sleep(4 * time.Second)
		if did := strings.Fields(s.done()); slices.Index(did, "new") < 0 || slices.Index(did, "z") > 4 {
			t.Errorf("reconciled %q: the live changes had to wait", s.done())
		}
		time.Sleep(time.Minute)
		if got := len(strings.Fields(s.done())); got != 27 {
			t.Errorf("%d keys reconciled, want each once", got)
		}
	})
}

// A system that never comes to rest is still looked at as a whole.
func TestSteadyChangeDoesNotStarveTheStart(t *testing.T) {
	q := newQueue[int]()
	now := time.Unix(0, 0)
	q.add(-1, Low, now)
	for i := range 100 {
		q.add(i, High, now)
	}
	for i := range 100 {
		key, _, _ := q.next(now)
		if key == -1 {
			return
		}
		q.done(key, Outcome{}, nil, 0, now)
		q.add(100+i, High, now)
	}
	t.Error("the key of low priority never had its turn")
}

// Rule 8: after a write, a key rests until the view shows it.
func TestKeyWaitsForTheViewAfterAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, nil)
		var mu sync.Mutex
		shown := false
		s.set("a", func(context.Context) (Outcome, error) {
			return Outcome{Await: func() bool { mu.Lock(); defer mu.Unlock(); return shown }}, nil
		})
		c.Add(High, "a")
		synctest.Wait()
		c.Add(High, "a") // more is wanted
		c.Observed("a")  // an older state is seen
		time.Sleep(time.Second)
		if s.done() != "a" {
			t.Fatalf("reconciled %q on what the view does not show yet", s.done())
		}
		mu.Lock()
		shown = true
		mu.Unlock()
		c.Observed("a")
		synctest.Wait()
		if s.done() != "a a" {
			t.Errorf("reconciled %q after the view had caught up", s.done())
		}
	})
}

// A view that never shows a write, because somebody else wrote after it, does
// not hold up a key for ever.
func TestWaitForTheViewIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, nil)
		s.set("a", func(context.Context) (Outcome, error) { return Outcome{Await: func() bool { return false }}, nil })
		c.Add(High, "a")
		synctest.Wait()
		c.Add(High, "a")
		time.Sleep(viewWait + time.Second)
		if s.done() != "a a" {
			t.Errorf("reconciled %q", s.done())
		}
	})
}

// What the view never shows may be gone before the view had it, so the key is
// looked at again, by itself.
func TestWriteThatIsNeverSeenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{}
		c := started(t, s, nil)
		wrote := 0
		s.set("a", func(context.Context) (Outcome, error) {
			if wrote++; wrote > 2 {
				return Outcome{}, nil // it is there
			}
			return Outcome{Await: func() bool { return false }}, nil
		})
		c.Add(High, "a")
		time.Sleep(time.Minute)
		if got := c.Status(); s.done() != "a a a" || got.Length != 0 {
			t.Errorf("reconciled %q, status %+v", s.done(), got)
		}
	})
}

// Rule 9: what waits is visible, with its age.
func TestQueueIsVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &system{does: map[string]func(context.Context) (Outcome, error){}}
		s.does["slow"] = func(context.Context) (Outcome, error) { time.Sleep(time.Minute); return Outcome{}, nil }
		c := started(t, s, nil)
		start := time.Now()
		c.Add(High, "slow")
		time.Sleep(10 * time.Second)
		c.Add(High, "a", "b")
		if got := c.Status(); got.Length != 3 || !got.Oldest.Equal(start) {
			t.Errorf("status %+v", got)
		}
		time.Sleep(time.Minute)
		if got := c.Status(); got.Length != 0 || !got.Oldest.IsZero() {
			t.Errorf("nothing waits, and status is %+v", got)
		}
	})
}
