package istio

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/controller"
)

// reconcile brings the objects of one key to the desired state.
func (w *Writer) reconcile(ctx context.Context, key Key) (controller.Outcome, error) {
	world := w.look()
	t, actions := w.actions(world, key)
	t.after = max(t.after, w.keepSelected(ctx, key, actions))
	w.ledger.planned(key, t, actions)
	var errs []error
	var wrote []expectation
	outcome := controller.Outcome{After: t.after}
	moves, written := movesOf(actions), map[Ref]Observed{}
	todo := slices.DeleteFunc(moves.order(actions), func(a Action) bool { return a.Verb == Leave })
	turn := w.turn(ctx, todo)
	defer turn.end()
	for i, a := range todo {
		if now, err := turn.next(ctx); err != nil || !now {
			outcome.Throttled, outcome.Urgency = true, urgencyOf(todo[i:])
			break
		}
		expected, err := w.carryOutKeeping(ctx, a, moves, written)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		wrote = append(wrote, expected...)
	}
	if ctx.Err() != nil {
		return controller.Outcome{}, ctx.Err()
	}
	if len(errs) == 0 && !outcome.Throttled {
		w.reached(key)
	}
	if len(wrote) > 0 {
		outcome.Await = func() bool { return w.seen(wrote) }
	}
	return outcome, errors.Join(errs...)
}

// reached records that every commit of a key has been written.
func (w *Writer) reached(key Key) {
	if took, ok := w.ledger.reached(key); ok && w.options.Written != nil {
		w.options.Written(took)
	}
}

// expectation is the state that the view will show once it has caught up with a write.
type expectation struct {
	Ref
	version string // at least; empty if the object with this uid is deleted
	uid     string
	now     Observed // the written object
}

// carryOutKeeping carries out the action on one object, except for endpoints that it must
// not lose before another object of the service has them. It records the result in written;
// an object may come twice.
func (w *Writer) carryOutKeeping(ctx context.Context, a Action, m moves, written map[Ref]Observed) ([]expectation, error) {
	if now, ok := written[a.Ref]; ok {
		a.have = now
	}
	if keep := m.kept(a.Ref, written); a.Kind == WorkloadEntry && a.Verb == Delete && len(keep) > 0 {
		written[a.Ref] = a.have
		return nil, nil // the object stays until a write of the other succeeds
	} else if a.Verb != Leave && len(keep) > 0 {
		var err error
		if a, err = w.widened(ctx, a, keep); err != nil {
			return nil, err
		}
		if a.want.differs(a.have) == "" {
			written[a.Ref] = a.have // wide enough since an earlier attempt
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
func (w *Writer) carryOut(ctx context.Context, a Action) ([]expectation, error) {
	drifted := w.ledger.drifted(a)
	if wait, contested := w.ledger.contested(a.Ref, time.Now()); drifted && contested {
		return nil, &controller.Retry{Err: &contest{a.Ref}, After: wait}
	}
	answered := w.ledger.sent(a, time.Now())
	defer answered()
	var now Observed
	var err error
	switch a.Verb {
	case Leave:
		return nil, nil
	case Create:
		now, err = w.remote.create(ctx, a.want)
		if err != nil && exists(err) {
			err = w.inTheWay(ctx, a, err)
		}
	case Update:
		now, err = w.remote.update(ctx, a.want, a.have)
	case Delete:
		err = w.remote.delete(ctx, a.have)
	}
	if err != nil {
		if ctx.Err() == nil {
			w.ledger.failed()
		}
		return nil, asRejection(a.Ref, err)
	}
	w.ledger.wrote(a, now, drifted)
	w.log.Debug("written", "verb", string(a.Verb), "object", a.String(), "reason", a.Reason, "drift", drifted)
	if a.Verb == Delete {
		return []expectation{{Ref: a.Ref, uid: a.have.UID}}, nil
	}
	return []expectation{{a.Ref, now.Version, now.UID, now}}, nil
}

// errRaced reports that the view lags. It catches up by itself.
var errRaced = errors.New("somebody else has created or deleted it at the same time; it is looked at again")

// inTheWay returns the error for the object that blocks a creation.
func (w *Writer) inTheWay(ctx context.Context, a Action, err error) error {
	u, getErr := w.remote.get(ctx, a.Ref)
	switch {
	case apierrors.IsNotFound(getErr), getErr == nil && includes(u.GetLabels(), a.want.Labels):
		return errRaced
	case getErr != nil:
		return err
	}
	return &clash{a.Ref, u.GetLabels()}
}

// seen reports whether the view has caught up with the writes.
func (w *Writer) seen(wrote []expectation) bool {
	for _, e := range wrote {
		o, ok := w.view.object(e.Ref)
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
