package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// TestFlappingSourceBacksOff counts the runs of a source that always fails.
func TestFlappingSourceBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []time.Time
		src := sourceFunc(func(context.Context, source.Sink) error {
			runs = append(runs, time.Now())
			return errors.New("no")
		})
		s := supervise.New("reg", src, newLedger(), supervise.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		// Waits average 22 s once they have grown, and never exceed 30 s.
		if len(runs) < 120 || len(runs) > 500 {
			t.Errorf("%d runs in an hour", len(runs))
		}
		for i := range runs[1:] {
			wait, bound := runs[i+1].Sub(runs[i]), min(400*time.Millisecond<<min(i, 20), 30*time.Second)
			if wait < bound/2 || wait > bound {
				t.Errorf("wait %d is %s, want half of %s to all of it", i, wait, bound)
			}
		}
	})
}

func TestBackoffStartsOverAfterLiveness(t *testing.T) {
	supervised(t, func(b *bridge) {
		for range 12 {
			b.fail("no")
			time.Sleep(time.Minute)
		}
		b.list()
		time.Sleep(time.Minute)
		b.fail("no")
		failed, runs := time.Now(), len(b.registry.began())
		time.Sleep(time.Second)
		began := b.registry.began()
		if len(began) == runs {
			t.Fatalf("not run again within a second of failing after a minute live")
		}
		if wait := began[runs].Sub(failed); wait > 400*time.Millisecond {
			t.Errorf("run again after %s", wait)
		}
	})
}

func TestPanicStopsTheSourceAlone(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(service("a", "f", "1"), service("stays", "f", "2"))
		b.panics("index out of range")
		b.inState(source.StateStale)
		mentions(t, b.Status().Reason, "panic: index out of range", "report")
		b.holds("Endpoint ns/a/1", "Endpoint ns/stays/2", "Service ns/a in f", "Service ns/stays in f")
		time.Sleep(time.Minute)
		b.list(service("stays", "f", "2"))
		b.holds("Endpoint ns/stays/2", "Service ns/stays in f")
		b.inState(source.StateLive)
	})
}

func TestPanicIsLoggedWithItsStack(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	src := sourceFunc(func(context.Context, source.Sink) error {
		if log.Len() > 0 {
			cancel()
			return nil
		}
		panic("boom")
	})
	s := supervise.New("reg", src, newLedger(), supervise.Config{
		Log: slog.New(slog.NewTextHandler(&log, nil)), MinBackoff: 1, MaxBackoff: 1,
	})
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	mentions(t, log.String(), "source=reg", "boom", "stack=", "failure_test.go")
}

func TestSourceThatEndsIsRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := supervise.New("reg", sourceFunc(func(context.Context, source.Sink) error {
			runs++
			return nil
		}), newLedger(), supervise.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if runs < 2 {
			t.Errorf("%d runs in a second", runs)
		}
		mentions(t, s.Status().Reason, "ended")
	})
}

func TestRunFailsTheSecondTime(t *testing.T) {
	supervised(t, func(b *bridge) {
		if err := b.Run(t.Context()); err == nil {
			t.Error("ran a second time beside the first")
		}
	})
}
