package write

import (
	"context"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
)

// mostAtATime bounds the writes of a key at a time in any case. The key is then reconciled
// again, because the desired state may have changed.
const mostAtATime = 64

// batch is the writes of one key, before it makes room for others.
type batch struct {
	pace    *pace
	term    *controller.Controller[object.Key]
	permit  controller.Permit
	urgency controller.Urgency
	wrote   int
}

// batch returns the batch of a key with so many actions.
func (w *Writes) batch(ctx context.Context, term *controller.Controller[object.Key], todo []plan.Action) *batch {
	return &batch{pace: w.remote.pace, term: term, permit: controller.PermitOf(ctx), urgency: plan.UrgencyOf(todo)}
}

// next waits for the right to one more write. False means that other keys come first: the
// rest of this key has to wait in the queue.
func (b *batch) next(ctx context.Context) (bool, error) {
	if b.permit.Given {
		b.permit.Given = false
		b.wrote++
		return true, nil
	}
	if b.wrote >= mostAtATime {
		return false, nil
	}
	all, more := b.term.Throttled(b.urgency)
	room := b.wrote < plan.AtATime && (more == 0 || b.permit.Fair)
	if all == 0 || room {
		if ok, _ := b.pace.take(time.Now()); ok {
			b.wrote++
			return true, nil
		}
	}
	if b.wrote == 0 || all > 0 && !room {
		return false, nil
	}
	b.wrote++
	return true, b.pace.Wait(ctx)
}

// end returns the unused right.
func (b *batch) end() {
	if b.permit.Given {
		b.pace.giveBack()
	}
}
