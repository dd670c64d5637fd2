package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/source"
)

// Source mirrors one cluster.
type Source struct {
	config Config
	env    source.Env
	pace   pace
	target func() (*rest.Config, error) // asked with each run
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
	kinds, err := s.config.kinds(target)
	if err != nil {
		return fmt.Errorf("%s: %w", target.Host, err)
	}
	r := &run{Source: s, sink: sink, mirror: newMirror(s.config.cluster(), s.config.isClusterLocal), woken: make(chan struct{}, 1), panicked: make(chan any, 1), reported: map[string]metav1.StatusReason{}}
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
			if r.listed {
				unread := r.unread()
				if err := r.pass(ctx, r.protected(r.mirror.all(), unread)); err != nil {
					return err
				}
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
	if !r.listed {
		if wait := r.waits(now); wait > 0 {
			return min(wait, again), nil
		}
		unread := r.unread()
		listing := r.mirror.first()
		for _, f := range unread {
			r.protect(&listing, f)
		}
		if err := r.sink.Replace(ctx, listing); err != nil {
			return 0, err
		}
		r.listed = true
		return again, nil
	}
	if err := r.gather(ctx); err != nil {
		return 0, err
	}
	unread := r.unread()
	return again, r.pass(ctx, r.protected(r.mirror.take(), unread))
}

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

func (r *run) pass(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if s.listing != nil {
			if err := r.sink.Replace(ctx, *s.listing); err != nil {
				return err
			}
			continue
		}
		if err := r.sink.Change(ctx, s.change); err != nil {
			return err
		}
	}
	return nil
}

// waits is how long the first listing still has to wait; zero if it has not.
func (r *run) waits(now time.Time) time.Duration {
	for _, f := range r.feeds {
		if f.isListed() {
			continue
		}
		if _, err := f.failing(); err != nil && !f.required && r.mayBeListedLater(f.resource, err) {
			continue
		}
		if rest := r.began.Add(r.pace.first).Sub(now); rest > 0 || f.required {
			return max(rest, time.Millisecond)
		}
	}
	return 0
}

// mayBeListedLater reports whether a first listing may do without a kind that cannot be
// read now: one that is absent, or may not be read. What is stored of a kind with a place
// of its own stays; before anything is stored it would be missing, as what nodes and pods
// say would on endpoints, so these are waited for.
func (s *Source) mayBeListedLater(resource string, err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || placeOf(resource) != "" && s.hasStored()
}

// hasStored reports whether something was listed before, in this process or an earlier one.
func (s *Source) hasStored() bool {
	if s.env.Stored == nil {
		return false
	}
	for range s.env.Stored() {
		return true
	}
	return false
}

// judge looks at kinds that cannot be read: whether one of them ends the run, and which
// are to be reported, or not any more.
func (r *run) judge(now time.Time) (again time.Duration, err error) {
	again = time.Hour
	away := false
	for _, f := range r.feeds {
		since, err := f.failing()
		rest := since.Add(r.pace.failing).Sub(now)
		switch {
		case err == nil && f.required && !f.isListed() && now.Sub(r.began) >= r.pace.first:
			return 0, fmt.Errorf("%s: the API server has not listed them within %s", f.name(), r.pace.first)
		case err == nil:
			r.report(f, nil)
		case f.required && (!f.isListed() || rest <= 0):
			return 0, fmt.Errorf("%s: %s", f.name(), explain(err))
		case rest > 0:
			again = min(again, rest)
			away = away || f.required
		case !away: // else it is the API server that is away, and not the kind
			r.report(f, err)
		}
	}
	return again, nil
}

// report has the status say why a kind cannot be read, or that it can. What it says
// besides changes with each try, so the reason alone counts.
func (r *run) report(f *feed, err error) {
	said, reported := r.reported[f.name()]
	if !r.listed || reported == (err != nil) && said == apierrors.ReasonForError(err) {
		return
	}
	if delete(r.reported, f.name()); err != nil {
		r.reported[f.name()] = apierrors.ReasonForError(err)
	}
	r.mirror.list(f.resource)
}

// unread are the kinds that cannot be read. Whoever makes a listing asks before: one that
// is listed meanwhile is protected once too often, and listed with the next.
func (r *run) unread() (list []*feed) {
	for _, f := range r.feeds {
		if r.isUnread(f) {
			list = append(list, f)
		}
	}
	return list
}

// protected adds to listings what is unread of their places, so that it stays.
func (r *run) protected(steps []step, unread []*feed) []step {
	for _, s := range steps {
		for _, f := range unread {
			if s.listing != nil && (len(s.listing.Places) == 0 || s.listing.Places[0] == f.resource) {
				r.protect(s.listing, f)
			}
		}
	}
	return steps
}

func (r *run) isUnread(f *feed) bool {
	_, reported := r.reported[f.name()]
	return reported || !f.isListed()
}

// protect keeps what is stored of a kind that cannot be read.
func (r *run) protect(listing *source.Listing, f *feed) {
	since, err := f.failing()
	reason := "not listed yet"
	if err != nil {
		reason = fmt.Sprintf("cannot be read since %s: %s", since.UTC().Format(time.RFC3339), explain(err))
	}
	r.reported[f.name()] = apierrors.ReasonForError(err)
	listing.Rejected = append(listing.Rejected, source.Rejection{Place: f.resource, Object: f.name(), Where: f.name(), Reason: reason})
}

// explain says why a kind cannot be read, and what to do.
func explain(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%v; allow get, list and watch, or turn it off", err)
	case apierrors.IsNotFound(err):
		return "the API server has no such kind; install its custom resource definition, or turn it off"
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%v; renew the credentials of the kubeconfig", err)
	default:
		return err.Error()
	}
}
