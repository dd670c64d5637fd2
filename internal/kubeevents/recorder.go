// Package kubeevents writes Kubernetes Events about objects of an API server, for operators
// who describe these objects. It writes one when an object gets into trouble, when the
// reason changes, and when the trouble is over: never for a repeated reading.
//
// Events are optional. A [Recorder] has a bounded queue, which a [Client] empties at a bounded
// rate; Events beyond the bound are dropped, counted and logged. client-go's correlator counts
// equal Events, unites similar ones, and limits the Events of one object. The name of an Event
// depends on its content alone, so another replica or a later process repeats none.
//
// Any goroutine may call the methods of a Recorder, none of which blocks, except
// [Recorder.Run], which one goroutine at a time runs. A nil Recorder writes nothing.
package kubeevents

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// Object names a namespaced object of an API server.
type Object struct{ Group, Resource, Kind, Namespace, Name string }

// Event is an Event about an object.
type Event struct {
	Object
	Reason, Message string // the reason in CamelCase
	// Old says that the cause may be older than the caller. Then an equal Event that exists,
	// of another replica or an earlier process, is left unchanged.
	Old bool

	warning bool
}

const (
	queued    = 250 // Events that wait
	perSecond = 5
	burst     = 25
	tries     = 3                // of one Event while the API server is away
	pause     = 5 * time.Second  // between them
	denial    = 10 * time.Minute // how long none is tried in a namespace after one was forbidden
)

// Recorder decides which Events are written, and in which order.
type Recorder struct {
	log        *slog.Logger
	wake       chan struct{}
	limit      flowcontrol.RateLimiter
	correlator *record.EventCorrelator
	denied     map[string]time.Time // by namespace, until when no Event is tried; belongs to Run
	reported   bool                 // that a right is missing; belongs to Run

	mu      sync.Mutex
	warned  map[Object]string // the trouble of each object with a queued or written warning
	queue   []Event
	dropped int // since the queue was last empty
}

// New returns a recorder.
func New(log *slog.Logger) *Recorder {
	return &Recorder{
		log: log, wake: make(chan struct{}, 1), warned: map[Object]string{}, denied: map[string]time.Time{},
		limit: flowcontrol.NewTokenBucketRateLimiter(perSecond, burst), correlator: record.NewEventCorrelator(clock.RealClock{}),
	}
}

// Warn records that an object is in trouble. It does nothing if that is known.
func (r *Recorder) Warn(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	trouble := e.Reason + ": " + e.Message
	if r.warned[e.Object] == trouble {
		return
	}
	if e.warning = true; r.add(e) {
		r.warned[e.Object] = trouble
	}
}

// Clear records that an object is not in trouble any more. It does nothing if no trouble is
// known.
func (r *Recorder) Clear(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.warned[e.Object]; known {
		delete(r.warned, e.Object)
		r.add(e)
	}
}

// Forget drops the trouble of an object that does not exist any more.
func (r *Recorder) Forget(o Object) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.warned, o)
}

// Warned returns the objects with a known trouble.
func (r *Recorder) Warned() []Object {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Object, 0, len(r.warned))
	for o := range r.warned {
		all = append(all, o)
	}
	return all
}

// add queues an Event, if there is room.
func (r *Recorder) add(e Event) bool {
	if len(r.queue) >= queued {
		r.dropped++
		return false
	}
	r.queue = append(r.queue, e)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

// first returns the first queued Event; ok is false if there is none. It also returns how
// many Events were dropped since the queue was last empty.
func (r *Recorder) first() (e Event, ok bool, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) > 0 {
		return r.queue[0], true, 0
	}
	r.queue, dropped, r.dropped = nil, r.dropped, 0
	return e, false, dropped
}

// done removes the first queued Event.
func (r *Recorder) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = r.queue[1:]
}

// Run writes the queued Events until ctx ends. An Event that is not written by then is
// written by the next run.
func (r *Recorder) Run(ctx context.Context, to *Client) {
	if r == nil {
		return
	}
	for {
		e, ok, dropped := r.first()
		if dropped > 0 {
			r.log.Warn("too many Kubernetes Events at once: some are dropped; the status has all reasons", "count", dropped)
		}
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-r.wake:
			}
			continue
		}
		if r.write(ctx, to, e); ctx.Err() != nil {
			return
		}
		r.done()
	}
}

// write writes an Event, unless the right is missing. It tries again while the API server
// is away.
func (r *Recorder) write(ctx context.Context, to *Client, e Event) {
	if time.Now().Before(r.denied[e.Namespace]) {
		return
	}
	var err error
	for range tries {
		if r.limit.Wait(ctx) != nil {
			return
		}
		if err = to.write(ctx, e, r.correlator); !passes(err) {
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
	switch {
	case err == nil:
		delete(r.denied, e.Namespace)
	case apierrors.IsForbidden(err):
		r.denied[e.Namespace] = time.Now().Add(denial)
		if !r.reported {
			r.reported = true
			r.log.Info(`no Kubernetes Events are written, which affects nothing else; to allow them, add this rule: {apiGroups: [""], resources: [events], verbs: [create, patch]}`,
				"namespace", e.Namespace, "err", err)
		}
	default:
		r.log.Debug("a Kubernetes Event was not written", "object", e.Kind+" "+e.Namespace+"/"+e.Name, "err", err)
	}
}

// passes reports whether an error is caused by the network or the API server's state.
func passes(err error) bool {
	status := apierrors.APIStatus(nil)
	if err == nil || !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
