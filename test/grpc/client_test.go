package grpc_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const (
	interval = 20 * time.Millisecond
	// deadline is that of calls. It is longer than the 15 s after which a client
	// gives up on a resource, for that is to be seen.
	deadline = until.Patience
)

// client is a gRPC client in a process of its own, which makes calls all the
// time.
type client struct {
	*process

	t       *testing.T
	input   io.Closer
	journal *journal
}

// dial starts a client of an Isthmus that calls targets, such as
// reviews.example.com:80.
func dial(t *testing.T, impl clients.Implementation, i *isthmus, targets ...string) *client {
	t.Helper()
	return dialEvery(t, interval, impl, i, targets...)
}

// dialEvery is the same for calls at an interval.
func dialEvery(t *testing.T, interval time.Duration, impl clients.Implementation, i *isthmus, targets ...string) *client {
	t.Helper()
	return dialWith(t, interval, impl, []string{printBootstrap(t, impl, "--address", i.XDS)}, targets...)
}

// printBootstrap has Isthmus print the bootstrap of a client, and returns the
// variable that names the file.
func printBootstrap(t *testing.T, impl clients.Implementation, flags ...string) (env string) {
	t.Helper()
	flags = append([]string{"bootstrap", "grpc", "--language", impl.Language, "--node", impl.Name, "--namespace", "shop"}, flags...)
	text, err := exec.CommandContext(t.Context(), program, flags...).Output()
	if err != nil {
		t.Fatalf("isthmus %q: %v", flags, err)
	}
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "GRPC_XDS_BOOTSTRAP=" + file
}

// dialWith is the same with variables, of which one names a bootstrap.
func dialWith(t *testing.T, interval time.Duration, impl clients.Implementation, env []string, targets ...string) *client {
	t.Helper()
	c := &client{t: t, journal: newJournal()}
	arguments := slices.Concat(impl.Command, []string{milliseconds(interval), milliseconds(deadline)}, targets)
	c.process, c.input = startProcess(t, "the client of "+impl.Name, c.journal, env, arguments...)
	return c
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// AwaitAnswers waits until calls to a target, made from now on, are answered by
// each of the backends named, and by nobody else.
func (c *client) AwaitAnswers(target string, names ...string) {
	c.t.Helper()
	slices.Sort(names)
	from := c.journal.Len(target)
	c.await(fmt.Sprintf("answers from %v", names), func() error {
		last := c.journal.Last(target, from, 25*len(names))
		if last == nil {
			return fmt.Errorf("%d calls have ended", c.journal.Len(target))
		}
		if got := answered(last); !slices.Equal(got, names) {
			return fmt.Errorf("the last calls were answered by %q", got)
		}
		return nil
	})
}

// AwaitShares waits until the calls to a target are shared by the backends like
// this. The figure is over all calls since the shares began to look like it, which
// are 4,000 at least: the more they are, the less chance has a part in it.
func (c *client) AwaitShares(target string, want shares) {
	c.t.Helper()
	c.awaitAllShares(4000, map[string]shares{target: want})
}

// awaitAllShares is AwaitShares for several targets at a time, with a number of calls
// for each.
func (c *client) awaitAllShares(many int, want map[string]shares) {
	c.t.Helper()
	const few = 300
	from := map[string]int{}
	for target := range want {
		from[target] = c.journal.Len(target)
	}
	for target, of := range want {
		c.await(fmt.Sprintf("shares somewhat like %v", of), func() error {
			return of.within(12, c.journal.Last(target, from[target], few))
		})
		from[target] = c.journal.Len(target)
	}
	for target, of := range want {
		var got []call
		for range many / few {
			c.AwaitCalls(target, few)
		}
		c.await(fmt.Sprintf("shares of %v", of), func() error {
			if got = c.journal.Since(target, from[target]); len(got) < many {
				return fmt.Errorf("%d calls have ended", len(got))
			}
			return of.exactly(got)
		})
		c.t.Logf("of %d calls to %s: %v, for %v", len(got), target, sharesOf(got), of)
	}
}

// AwaitCalls waits until so many more calls to a target have ended, however.
func (c *client) AwaitCalls(target string, more int) {
	c.t.Helper()
	from := c.journal.Len(target)
	c.await(fmt.Sprintf("%d calls", more), func() error {
		if got := c.journal.Len(target) - from; got < more {
			return fmt.Errorf("%d have ended", got)
		}
		return nil
	})
}

// AwaitFailure waits until a call to a target fails, of those that end from now
// on, and returns the first that did.
func (c *client) AwaitFailure(target string) (failed call) {
	c.t.Helper()
	from := c.journal.Len(target)
	c.await("a call to "+target+" to fail", func() error {
		made := c.journal.Since(target, from)
		at := slices.IndexFunc(made, call.failed)
		if at < 0 {
			return fmt.Errorf("none of %d has", len(made))
		}
		failed = made[at]
		return nil
	})
	return failed
}

// await is await for as long as the client lives.
func (c *client) await(what string, check func() error) {
	c.t.Helper()
	until.NoError(c.t, 20*time.Millisecond, what, func() error {
		if c.Gone() {
			c.t.Fatalf("%s has ended by itself: %v", c.name, c.err)
		}
		return check()
	})
}

// Stop has the client make no more calls. Each that it has made has ended.
func (c *client) Stop() {
	c.t.Helper()
	if err := c.input.Close(); err != nil {
		c.t.Fatal(err)
	}
	await(c.t, "the client to end", func() error {
		if !c.Gone() {
			return fmt.Errorf("%s is still there", c.name)
		}
		return nil
	})
	if c.err != nil {
		c.t.Errorf("%s ended: %v", c.name, c.err)
	}
	c.journal.MustBeWhole(c.t)
}

// MustNotHaveFailed stops the client, unless it is, and counts the calls to a
// target. None of them may have failed.
func (c *client) MustNotHaveFailed(target string) (made int) {
	c.t.Helper()
	if !c.Gone() {
		c.Stop()
	}
	made, failures := c.journal.Len(target), c.journal.Select(target, call.failed)
	if len(failures) > 0 {
		c.t.Errorf("%d of %d calls to %s failed: %v", len(failures), made, target, failures[:min(3, len(failures))])
	}
	return made
}
