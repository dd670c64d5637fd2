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
	target func() (*rest.Config, error) // asked with each run
	plugin kubeconfig.Plugin            // what earlier runs wait for is known to the next
}

var _ source.Source = (*Source)(nil)

// pace is how long something may take.
type pace struct {
	first   time.Duration // the first answer for each kind
	failing time.Duration // that a kind fails before that counts
	gather  time.Duration // that changes are gathered
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
	panicked chan any // the first of a feed, which is the run's own
	began    time.Time
	listed   bool
	reported map[string]metav1.StatusReason // of kinds that are said to be unreadable
}

func (r *run) wake() {
	select {
	case r.woken <- struct{}{}:
	default: // it is going to look anyway
	}
}

// notePanic has the run panic in the place of a feed: the supervisor knows of no other
// goroutine.
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
//   - something that was read, or that can no longer be read,
//   - the supervisor, who wants everything listed once more,
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

// look passes on what there is, and says when to look again at the latest.
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

// gather waits a moment for what comes with what came: the objects of one cause are
// often written one after the other.
func (r *run) gather(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(r.pace.gather):
		return nil
	}
}

// pass passes on what a reading of the mirror gives.
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
