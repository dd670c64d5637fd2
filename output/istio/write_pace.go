package istio

import (
	"context"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
	pausing "github.com/isthmus-mesh/isthmus/internal/wait"
)

// pace bounds the writes per second. It has no order: waiting keys are ordered by the
// controller's queue.
type pace struct {
	perSecond, burst float64

	mu     sync.Mutex
	tokens float64
	at     time.Time // when tokens was correct
	inline int       // waiters for a token outside of the queue
}

func newPace(qps float64, burst int) *pace {
	return &pace{perSecond: qps, burst: float64(burst), tokens: float64(burst)}
}

// take takes the right to one write, or otherwise returns when there will be one.
func (p *pace) take(now time.Time) (ok bool, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() {
		p.tokens = min(p.burst, p.tokens+max(now.Sub(p.at), 0).Seconds()*p.perSecond)
	}
	p.at = now
	if p.tokens >= 1 {
		p.tokens--
		return true, time.Time{}
	}
	return false, now.Add(time.Duration((1-p.tokens)/p.perSecond*float64(time.Second)) + time.Millisecond)
}

// giveBack returns an unused right.
func (p *pace) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens = min(p.burst, p.tokens+1)
}

// Wait takes the right to one write, as soon as there is one.
func (p *pace) Wait(ctx context.Context) error {
	p.beside(1)
	defer p.beside(-1)
	for {
		now := time.Now()
		ok, at := p.take(now)
		if ok {
			return ctx.Err()
		}
		if !pausing.Sleep(ctx, at.Sub(now)) {
			return ctx.Err()
		}
	}
}

func (p *pace) beside(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inline += more
}

// atATime is the number of writes that a key may have at a time while others wait.
const atATime = 16

// mostATurn bounds the writes of a key at a time in any case. The key is then reconciled
// again, because the desired state may have changed.
const mostATurn = 64

// turn is the batch of writes of one key, before it makes room for others.
type turn struct {
	pace    *pace
	term    *controller.Controller[Key]
	permit  controller.Permit
	urgency controller.Urgency
	wrote   int
}

// turn returns the batch of a key with so many actions.
func (w *Writer) turn(ctx context.Context, todo []Action) *turn {
	return &turn{pace: w.remote.pace, term: w.term.Load(), permit: controller.PermitOf(ctx), urgency: urgencyOf(todo)}
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
	room := t.wrote < atATime && (more == 0 || t.permit.Fair)
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

// urgencyOf returns the urgency of a key's remaining actions. A removed endpoint still gets
// traffic, and a new one gets none yet.
func urgencyOf(actions []Action) controller.Urgency {
	urgency := controller.Routine
	for _, a := range actions {
		switch a.Verb {
		case Leave:
		case Delete:
			return controller.MostUrgent
		case Create:
			urgency = max(urgency, controller.Urgent)
		default:
			after := membersOf(a.want.Spec)
			if len(without(a.have.members, after)) > 0 {
				return controller.MostUrgent
			}
			if len(without(after, a.have.members)) > 0 {
				urgency = max(urgency, controller.Urgent)
			}
		}
	}
	return urgency
}
