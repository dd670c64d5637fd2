package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/plain"
	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// again is the interval at which the tour checks for an effect. The displayed latency does
// not depend on it: the ledger has the times.
const again = 5 * time.Millisecond

// step is a part of the tour. It changes the registry or a backend, and waits until the
// client has observed the effect.
type step struct {
	title string
	watch string // the change, and its expected effect
	do    func(context.Context) (observed, error)
}

// observed is the client's observation of a step.
type observed struct {
	after time.Duration
	what  string
}

// tour leads through the steps. It runs in a goroutine of its own and owns the
// fleet and the registry while it does.
type tour struct {
	*stage
	begun time.Time
	limit func(step int) time.Duration
	pause time.Duration // before and after each step
	say   func(text string)
}

// run makes the tour; the error names the step that was not observed.
func (t *tour) run(ctx context.Context) error {
	steps := t.steps()
	for i, s := range steps {
		t.say(fmt.Sprintf("\nStep %d of %d: %s\n%s", i+1, len(steps), s.title, indent(s.watch)))
		if !wait.Sleep(ctx, t.pause) {
			return ctx.Err()
		}
		saw, err := observe(ctx, s, t.limit(i+1))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			t.say(indent("NOT OBSERVED: " + plain.Lines(err.Error())))
			return fmt.Errorf("step %d of %d (%s) was not observed by the client: %w", i+1, len(steps), s.title, err)
		}
		t.say(indent(fmt.Sprintf("observed after %s: %s", ms(saw.after), plain.Lines(saw.what))))
		if !wait.Sleep(ctx, t.pause) {
			return ctx.Err()
		}
	}
	if t.lacking != nil {
		t.say("\nThe steps with a second registry are left out, since they need the addresses 127.0.0.1 to 127.0.0.5:\n" + indent(plain.Lines(t.lacking.Error())))
	}
	if t.envoyProgram == "" && t.second != nil {
		t.say(noEnvoy)
	}
	t.say(fmt.Sprintf("\nThe client observed all %d steps, in %.1f s.", len(steps), time.Since(t.begun).Seconds()))
	return nil
}

// observe does a step within its time.
func observe(ctx context.Context, s step, limit time.Duration) (observed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	return s.do(ctx)
}

// await asks until nothing is missing. If ctx ends before that, the error is the last
// missing condition.
func await(ctx context.Context, missing func() error) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	var last error
	for {
		err := missing()
		if _, hopeless := errors.AsType[hopelessError](err); err == nil || hopeless {
			return err
		}
		if last == nil || ctx.Err() == nil { // else err may say no more than that time is up
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		}
	}
}

// hopelessError is an error that waiting does not fix.
type hopelessError struct{ error }

// unharmed returns a check that no call has failed since.
func (t *tour) unharmed() func() error {
	before, _ := t.ledger.failures()
	return func() error {
		now, last := t.ledger.failures()
		if now > before {
			return hopelessError{fmt.Errorf("%d calls failed, the last one: %s", now-before, last)}
		}
		return nil
	}
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// ms is a latency for people.
func ms(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
