package write

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
)

// mostATurn bounds the writes of a key at a time in any case. The key is then reconciled
// again, because the desired state may have changed.
const mostATurn = 64

// turn is the batch of writes of one key, before it makes room for others.
type turn struct {
	pace    *pace
	term    *controller.Controller[object.Key]
	permit  controller.Permit
	urgency controller.Urgency
	wrote   int
}

// turn returns the batch of a key with so many actions.
func (w *Writes) turn(ctx context.Context, term *controller.Controller[object.Key], todo []plan.Action) *turn {
	return &turn{pace: w.remote.pace, term: term, permit: controller.PermitOf(ctx), urgency: plan.UrgencyOf(todo)}
}

// next waits for the right to one more write. False means that other keys come first: the
// rest of this key has to wait in the queue.
func (t *turn) next(ctx context.Context) (bool, error) {
	if t.permit.Given {
		t.permit.Given = false
		t.wrote++
		return true, nil
	}
	if t.wrote >= mostATurn {
		return false, nil
	}
	all, more := t.term.Throttled(t.urgency)
	room := t.wrote < plan.AtATime && (more == 0 || t.permit.Fair)
	if all == 0 || room {
		if ok, _ := t.pace.take(time.Now()); ok {
			t.wrote++
			return true, nil
		}
	}
	if t.wrote == 0 || all > 0 && !room {
		return false, nil
	}
	t.wrote++
	return true, t.pace.Wait(ctx)
}

// end returns the unused right.
func (t *turn) end() {
	if t.permit.Given {
		t.pace.giveBack()
	}
}
