// Package write carries out planned actions in an API server, paced and under preconditions,
// and records them. It decides nothing about objects. Any goroutine may call all methods.
package write

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/internal/kubeevents"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/observed"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
)

// Writes carries out the actions of plans, and records them.
type Writes struct {
	instance string // marks the objects
	remote   *Remote
	Written  *Written
	Troubles *Troubles
	log      *slog.Logger
}

// New returns the writes of an instance to an API server. Events are written about objects
// that it does not write.
func New(instance string, to *Remote, events *kubeevents.Recorder, log *slog.Logger) *Writes {
	written := newWritten()
	return &Writes{instance, to, written, &Troubles{events: events, written: written, others: map[object.Key]object.Ref{}}, log}
}

// Expected is the state that the view will show once it has caught up with some writes.
type Expected []expectation

// Rest is the part of a key's actions that has to wait in the queue.
type Rest struct {
	Waits   bool
	Urgency controller.Urgency
}

// Batch carries out the actions on the objects of a key in order, until other keys come
// first.
func (w *Writes) Batch(ctx context.Context, term *controller.Controller[object.Key], actions []plan.Action) (Expected, Rest, error) {
	var errs []error
	var wrote Expected
	var rest Rest
	for _, a := range actions {
		if a.Verb == plan.Leave {
			w.Troubles.report(a, nil)
		}
	}
	moves, written := plan.MovesOf(actions), map[object.Ref]object.Observed{}
	todo := slices.DeleteFunc(moves.Order(actions), func(a plan.Action) bool { return a.Verb == plan.Leave })
	batch := w.batch(ctx, term, todo)
	defer batch.end()
	for i, a := range todo {
		if now, err := batch.next(ctx); err != nil || !now {
			rest = Rest{true, plan.UrgencyOf(todo[i:])}
			break
		}
		expected, err := w.carryOutKeeping(ctx, a, moves, written)
		w.Troubles.report(a, err)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		wrote = append(wrote, expected...)
	}
	return wrote, rest, errors.Join(errs...)
}

// expectation is the state that the view will show once it has caught up with a write.
type expectation struct {
	object.Ref
	version string // at least; empty if the object with this uid is deleted
	uid     string
	now     object.Observed // the written object
}

// carryOutKeeping carries out the action on one object, except for endpoints that it must
// not lose before another object of the service has them. It records the result in written;
// an object may come twice.
func (w *Writes) carryOutKeeping(ctx context.Context, a plan.Action, m plan.Moves, written map[object.Ref]object.Observed) ([]expectation, error) {
	if now, ok := written[a.Ref]; ok {
		a.Have = now
	}
	if keep := m.Kept(a.Ref, written); a.Kind == object.WorkloadEntry && a.Verb == plan.Delete && len(keep) > 0 {
		written[a.Ref] = a.Have
		return nil, nil // the object stays until a write of the other succeeds
	} else if a.Verb != plan.Leave && len(keep) > 0 {
		var err error
		if a, err = w.widened(ctx, a, keep); err != nil {
			return nil, err
		}
		if a.Want.Differs(a.Have) == "" {
			written[a.Ref] = a.Have // wide enough since an earlier attempt
			return nil, nil
		}
	}
	expected, err := w.carryOut(ctx, a)
	for _, e := range expected {
		written[e.Ref] = e.now
	}
	return expected, err
}

// carryOut carries out the action on one object.
func (w *Writes) carryOut(ctx context.Context, a plan.Action) ([]expectation, error) {
	drifted := w.Written.drifted(a)
	if wait, again := w.Written.inConflict(a.Ref, time.Now()); drifted && again {
		return nil, &controller.Retry{Err: &conflict{a.Ref}, After: wait}
	}
	answered := w.Written.sent(a, time.Now())
	defer answered()
	var now object.Observed
	var err error
	switch a.Verb {
	case plan.Leave:
		return nil, nil
	case plan.Create:
		now, err = w.remote.create(ctx, a.Want)
		if err != nil && exists(err) {
			err = w.inTheWay(ctx, a, err)
		}
	case plan.Update:
		now, err = w.remote.update(ctx, a.Want, a.Have)
	case plan.Delete:
		err = w.remote.delete(ctx, a.Have)
	}
	if err != nil {
		if ctx.Err() == nil {
			w.Written.failed()
		}
		return nil, asRejection(a.Ref, err)
	}
	w.Written.wrote(a, now, drifted)
	w.log.Debug("written", "verb", string(a.Verb), "object", a.String(), "reason", a.Reason, "drift", drifted)
	if a.Verb == plan.Delete {
		return []expectation{{Ref: a.Ref, uid: a.Have.UID}}, nil
	}
	return []expectation{{a.Ref, now.Version, now.UID, now}}, nil
}

// SeenIn reports whether the view has caught up with the writes.
func (e Expected) SeenIn(view *observed.Objects) bool {
	for _, e := range e {
		o, ok := view.Object(e.Ref)
		switch {
		case e.version == "" && ok && o.UID == e.uid:
			return false
		case e.version == "":
		case !ok || o.UID == e.uid && older(o.Version, e.version):
			return false
		}
	}
	return true
}

// older compares two versions of one object. They are revisions of the API server's store.
// If they are not numbers, any other version counts as newer.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// inTheWay returns the error for the object that blocks a creation.
func (w *Writes) inTheWay(ctx context.Context, a plan.Action, err error) error {
	u, getErr := w.remote.Get(ctx, a.Ref)
	switch {
	case apierrors.IsNotFound(getErr), getErr == nil && object.Includes(u.GetLabels(), a.Want.Labels):
		return errRaced
	case getErr != nil:
		return err
	}
	return &Clash{a.Ref, u.GetLabels()}
}
