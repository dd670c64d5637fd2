package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Traffic is calls that go on beside the test.
type Traffic struct {
	client *Client
	cancel context.CancelFunc
	done   chan struct{}

	calls    atomic.Int64 // that have ended
	failures []error      // owned by the calling goroutine until done
}

// KeepCalling calls all the time until the traffic is stopped, at the latest at
// the end of the test.
func (c *Client) KeepCalling() *Traffic {
	ctx, cancel := context.WithCancel(c.t.Context())
	f := &Traffic{client: c, cancel: cancel, done: make(chan struct{})}
	go f.run(ctx)
	c.t.Cleanup(f.Stop)
	return f
}

func (f *Traffic) run(ctx context.Context) {
	defer close(f.done)
	pace := time.NewTicker(f.client.Pace)
	defer pace.Stop()
	for ctx.Err() == nil {
		if _, err := f.client.Call(ctx); err != nil && ctx.Err() == nil {
			f.failures = append(f.failures, err)
		}
		f.calls.Add(1)
		<-pace.C
	}
}

// AwaitNext waits until a call has ended that began after now, so that all before it have ended.
func (f *Traffic) AwaitNext() {
	f.client.t.Helper()
	const another = 2 // the first that ends may have begun before
	want := f.calls.Load() + another
	f.client.Await(f.client.t, "a call from beginning to end", func() error {
		if got := f.calls.Load(); got < want {
			return fmt.Errorf("%d calls have ended, and not %d", got, want)
		}
		return nil
	})
}

// Stop stops the traffic, whatever has become of the calls.
func (f *Traffic) Stop() {
	f.cancel()
	<-f.done
}

// MustNotHaveFailed stops the traffic. None of the calls may have failed.
func (f *Traffic) MustNotHaveFailed() {
	f.client.t.Helper()
	f.MustNotHaveFailedBut(nil)
}

// MustNotHaveFailedBut is the same, but for failures that are known to be the client's own.
func (f *Traffic) MustNotHaveFailedBut(known func(error) bool) {
	t := f.client.t
	t.Helper()
	f.Stop()
	if known != nil {
		f.failures = slices.DeleteFunc(f.failures, known)
	}
	if len(f.failures) > 0 {
		t.Errorf("%d of %d calls to %s failed: %v", len(f.failures), f.calls.Load(), f.client.Name, errors.Join(f.failures[:min(3, len(f.failures))]...))
	}
}
