package envoy_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// stormPace is how often each of the callers of an Envoy calls. Every call takes a
// connection of its own, and there are five Envoys.
const stormPace = 50 * time.Millisecond

// stormLoad is calls through one Envoy that never stop.
type stormLoad struct {
	t      *testing.T
	storm  *storm
	way    way
	cancel context.CancelFunc
	done   sync.WaitGroup
	began  time.Time

	calls, failures, excused atomic.Int64
	slowest                  atomic.Int64 // nanoseconds
}

// startStormLoad begins calls to all services in turn, and to the workload beside the
// sidecar.
func startStormLoad(t *testing.T, s *storm, w way) *stormLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &stormLoad{t: t, storm: s, way: w, cancel: cancel, began: time.Now()}
	for n := range workers {
		transport := anew()
		if n%2 == 0 { // half of the callers keep their connections, through listeners that go
			transport = &http.Transport{}
		}
		l.done.Go(func() {
			defer transport.CloseIdleConnections()
			l.run(ctx, transport, n*len(s.services)/workers)
		})
	}
	if w.workload != "" {
		l.done.Go(func() { l.runInbound(ctx, w.workload) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *stormLoad) stop() {
	l.cancel()
	l.done.Wait()
}

// run calls one service after the other.
func (l *stormLoad) run(ctx context.Context, transport *http.Transport, n int) {
	l.paced(ctx, func() {
		o := l.storm.services[n%len(l.storm.services)]
		n++
		if c, due := o.call(); due && l.way.takes(c.offer) {
			l.make(ctx, c.Host, func() error { return l.way.called(ctx, transport, o.name, c.offer) }, func() (bool, []string) { return o.still(c) })
		}
	})
}

// runInbound calls the workload of the sidecar, which is always there.
func (l *stormLoad) runInbound(ctx context.Context, at string) {
	l.paced(ctx, func() {
		l.make(ctx, "the workload at "+at, func() error { return answered(ctx, at) }, func() (bool, []string) { return true, nil })
	})
}

// answered checks that somebody answers a request.
func answered(ctx context.Context, at string) error {
	ctx, cancel := context.WithTimeout(ctx, until.Patience)
	defer cancel()
	from, err := askedByRequest(ctx, anew(), at, "anything.example.com")
	if err == nil && from == "" {
		err = errors.New("it answered nothing")
	}
	return err
}

func (l *stormLoad) paced(ctx context.Context, do func()) {
	tick := time.NewTicker(stormPace)
	defer tick.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// make makes one call, and reports its failure if it was due all along.
func (l *stormLoad) make(ctx context.Context, what string, call func() error, still func() (bool, []string)) {
	began := time.Now()
	err := call()
	if ctx.Err() != nil {
		return
	}
	l.calls.Add(1)
	if took := int64(time.Since(began)); took > l.slowest.Load() {
		l.slowest.Store(took) // near enough when two are slow at once
	}
	if err == nil {
		return
	}
	due, log := still()
	if !due {
		l.excused.Add(1)
		return
	}
	if n := l.failures.Add(1); n <= 5 {
		l.t.Errorf("%s %s: a call of %s begun at %s failed: %v\nwhat was done to it: %q", time.Now().Format("15:04:05.000"),
			l.way.Name, what, began.Format("15:04:05.000"), err, log)
	}
}

// MustNotHaveFailed stops the load. No call may have failed, and there must have been some.
func (l *stormLoad) MustNotHaveFailed() {
	l.t.Helper()
	l.stop()
	if n := l.failures.Load(); n > 0 {
		l.t.Errorf("%s: %d of %d calls failed", l.way.Name, n, l.calls.Load())
	}
	if l.calls.Load() == 0 {
		l.t.Errorf("%s: there were no calls", l.way.Name)
	}
	figures.add(l.t, "%s: %d calls in %s, %d failed, %d of services under removal not counted; slowest %s", l.way.Name,
		l.calls.Load(), time.Since(l.began).Round(time.Second), l.failures.Load(), l.excused.Load(), time.Duration(l.slowest.Load()).Round(time.Millisecond))
}
