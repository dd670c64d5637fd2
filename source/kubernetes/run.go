package kubernetes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/isthmus-mesh/isthmus/source"
)

// run follows a cluster. It belongs to one goroutine.
type run struct {
	env      source.Env
	pace     pace
	sink     source.Sink
	state    *state
	feeds    []*feed
	woken    chan struct{}
	panicked chan any // the first panic of a feed, which the run repeats
	began    time.Time
	listed   bool
	stored   map[string]bool                // places with stored records; nil until the run looks
	reported map[string]metav1.StatusReason // of kinds that the status reports as unreadable
}

func newRun(env source.Env, p pace, sink source.Sink, s *state) *run {
	return &run{
		env: env, pace: p, sink: sink, state: s,
		woken: make(chan struct{}, 1), panicked: make(chan any, 1), reported: map[string]metav1.StatusReason{},
	}
}

// notePanic passes a feed's panic to the run: the supervisor recovers only panics of
// the run's goroutine.
func (r *run) notePanic() {
	if p := recover(); p != nil {
		select {
		case r.panicked <- p:
		default:
		}
	}
}

// follow waits for
//   - the end,
//   - an event of a feed: an object was read, or the kind cannot be read any more,
//   - a relist that the supervisor requests,
//   - a panic of a feed,
//   - the time at which a kind has failed for too long, or not been answered.
func (r *run) follow(ctx context.Context) error {
	r.began = time.Now()
	timer := time.NewTimer(r.pace.first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.woken:
		case <-timer.C:
		case p := <-r.panicked:
			panic(p)
		case <-r.sink.Relist():
			if !r.listed {
				break
			}
			if err := r.pass(ctx, r.state.all); err != nil {
				return err
			}
		}
		again, err := r.look(ctx, time.Now())
		if err != nil {
			return err
		}
		timer.Reset(again)
	}
}

// look passes on pending changes, and returns the time until the next look.
func (r *run) look(ctx context.Context, now time.Time) (again time.Duration, err error) {
	if again, err = r.judge(now); err != nil {
		return 0, err
	}
	again = min(again, r.state.lapse(now))
	if !r.listed {
		if wait := r.waits(now); wait > 0 {
			return min(wait, again), nil
		}
		if err := r.pass(ctx, r.first); err != nil {
			return 0, err
		}
		r.listed = true
		return again, nil
	}
	if err := r.gather(ctx); err != nil {
		return 0, err
	}
	return again, r.pass(ctx, r.state.take)
}

func (r *run) first() []step { return r.state.first(r.env.Stored) }

// gather waits a moment for further changes: the objects of one cause are often
// written one after the other.
func (r *run) gather(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(r.pace.gather):
		return nil
	}
}

// pass passes on the steps that a reading of the mirror returns.
func (r *run) pass(ctx context.Context, read func() []step) error {
	for _, s := range read() {
		if s.listing == nil {
			if err := r.sink.Change(ctx, s.change); err != nil {
				return err
			}
			continue
		}
		r.protect(s)
		s.listing.Notices = r.notices()
		if err := r.sink.Replace(ctx, *s.listing); err != nil {
			return err
		}
	}
	return nil
}
