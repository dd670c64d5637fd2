package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/source"
)

// Source mirrors one cluster.
type Source struct {
	config Config
	env    source.Env
	pace   pace
	target func() (*rest.Config, error) // called with each run
	plugin kubeconfig.Plugin            // keeps its waits between runs
}

var _ source.Source = (*Source)(nil)

// pace bounds waits.
type pace struct {
	first   time.Duration // for the first answer for each kind
	failing time.Duration // how long a kind fails before that counts
	gather  time.Duration // how long changes are gathered
}

var usual = pace{first: 2 * time.Minute, failing: 5 * time.Second, gather: 10 * time.Millisecond}

// New returns a source for a configuration that is valid.
func New(c Config, env source.Env) *Source {
	return &Source{config: c, env: env, pace: usual, target: c.target}
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	target, err := s.target()
	if err != nil {
		return err
	}
	through, err := s.plugin.Transport(target)
	if err != nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	kinds, err := s.config.kinds(target, through)
	if err != nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	r := &run{Source: s, sink: sink, mirror: newMirror(&s.config, kinds), woken: make(chan struct{}, 1), panicked: make(chan any, 1), reported: map[string]metav1.StatusReason{}}
	following, end := context.WithCancel(ctx)
	var feeds sync.WaitGroup
	defer feeds.Wait()
	defer end()
	for _, k := range kinds {
		f := &feed{kind: k, into: r.mirror, wake: r.wake}
		r.feeds = append(r.feeds, f)
		feeds.Go(func() {
			defer r.notePanic()
			f.run(following)
		})
	}
	if err := r.follow(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	return context.Cause(ctx)
}

// run follows a cluster. It belongs to one goroutine.
type run struct {
	*Source
	sink     source.Sink
	mirror   *mirror
	feeds    []*feed
	woken    chan struct{}
	panicked chan any // the first panic of a feed, which the run repeats
	began    time.Time
	listed   bool
	reported map[string]metav1.StatusReason // of kinds that the status reports as unreadable
}

func (r *run) wake() {
	select {
	case r.woken <- struct{}{}:
	default: // the run is going to look anyway
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
			if err := r.pass(ctx, r.mirror.all); err != nil {
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
	again = min(again, r.mirror.lapse(now))
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
	return again, r.pass(ctx, r.mirror.take)
}

func (r *run) first() []step { return r.mirror.first(r.env.Stored) }

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
		if err := r.sink.Replace(ctx, *s.listing); err != nil {
			return err
		}
	}
	return nil
}
