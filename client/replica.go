package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// backoff is the wait before the next stream after one that broke.
var backoff = wait.Backoff{Min: 200 * time.Millisecond, Max: 30 * time.Second} //nolint:gochecknoglobals // a constant

// largestMessage bounds a received message. A message has at least one record, however large.
const largestMessage = 64 << 20

// Replica is a local copy of the records that a filter selects. Make one with [New].
type Replica struct {
	server resourcev1alpha1.ResourceServiceClient
	filter *resourcev1alpha1.Filter
	now    atomic.Pointer[state] // Run alone replaces it
}

// state is everything that readers see of a replica. It never changes.
type state struct {
	view    *View // nil until it is known
	sources []*resourcev1alpha1.SourceState
	why     error // the view is unknown, or may be old; nil while it is kept up to date
	resets  int
	reset   string        // the reason of the last one
	final   bool          // Run has ended with why
	changed chan struct{} // closed once there is another state
}

// New returns a replica of the records that a filter selects. It is unknown until
// [Replica.Run] runs. The filter must not be changed.
func New(conn grpc.ClientConnInterface, filter *resourcev1alpha1.Filter) *Replica {
	r := &Replica{server: resourcev1alpha1.NewResourceServiceClient(conn), filter: filter}
	r.now.Store(&state{why: errors.New("not connected yet"), changed: make(chan struct{})})
	return r
}

// View returns the newest view; nil until the first snapshot is complete.
func (r *Replica) View() *View { return r.now.Load().view }

// Sources yields the newest state of each source, in the order of their names, also while
// there is no view yet.
func (r *Replica) Sources() iter.Seq[*resourcev1alpha1.SourceState] {
	return slices.Values(r.now.Load().sources)
}

// Known reports whether there is a view. The error is why there is none, or why it may be
// old: the error of a broken stream, with its gRPC status, or the sources that Isthmus waits
// for. It is nil while the view is kept up to date.
func (r *Replica) Known() (known bool, why error) {
	s := r.now.Load()
	return s.view != nil, s.why
}

// Resets returns the number of resets so far and the reason of the last one. The view that
// follows a reset is not made of commits alone: Isthmus has restarted, or the stream fell too
// far behind.
func (r *Replica) Resets() (n int, reason string) {
	s := r.now.Load()
	return s.resets, s.reset
}

// Err returns the error with which Run has ended; nil while it runs.
func (r *Replica) Err() error {
	if s := r.now.Load(); s.final {
		return s.why
	}
	return nil
}

// Changed returns a channel that is closed once a method of the replica has
// another result than at this call.
func (r *Replica) Changed() <-chan struct{} { return r.now.Load().changed }

// Wait returns a view as soon as there is one. The error is why there is none, once ctx ends
// or Run has returned an error.
func (r *Replica) Wait(ctx context.Context) (*View, error) {
	for {
		s := r.now.Load()
		switch {
		case s.view != nil:
			return s.view, nil
		case s.final:
			return nil, s.why
		}
		// Cases: there is another state; the reader gives up.
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), s.why)
		}
	}
}

// publish replaces the state by one that differs.
func (r *Replica) publish(change func(*state)) {
	before := r.now.Load()
	after := *before
	after.changed = make(chan struct{})
	change(&after)
	r.now.Store(&after)
	close(before.changed)
}

// Run keeps the replica up to date. It returns when ctx ends, or for an error that trying
// again cannot cure, such as a filter that is not valid or not allowed. It opens broken
// streams again, with a growing wait in between.
func (r *Replica) Run(ctx context.Context) error {
	r.publish(func(s *state) { s.final = false })
	err := r.follow(ctx)
	r.publish(func(s *state) { s.why, s.final = err, true })
	return err
}

func (r *Replica) follow(ctx context.Context) error {
	var held *resourcev1alpha1.Moment
	if view := r.View(); view != nil {
		held = view.at
	}
	for failures := 0; ; {
		next := assembly{replica: r, held: held}
		err := r.stream(ctx, &next)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case cannotBeCured(err):
			return err
		}
		held = next.held
		if status.Code(err) == codes.FailedPrecondition {
			held = nil // that moment will never come
		}
		if next.progress {
			failures = 0
		}
		failures++
		r.publish(func(s *state) { s.why = err })
		wait.Sleep(ctx, backoff.After(failures, rand.Float64()))
	}
}

// stream watches once, and returns why the stream ended.
func (r *Replica) stream(ctx context.Context, next *assembly) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := &resourcev1alpha1.WatchListRequest{Filter: r.filter, Held: next.held}
	stream, err := r.server.WatchList(ctx, request, grpc.MaxCallRecvMsgSize(largestMessage))
	if err != nil {
		return err
	}
	next.begin()
	for {
		message, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("the server ended the watch")
		case err != nil:
			return err
		}
		next.take(message)
	}
}

// cannotBeCured reports whether the same request would fail again.
func cannotBeCured(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unimplemented:
		return true
	default:
		return false
	}
}
