package write

import (
	"context"
	"sync"
	"time"

	pausing "github.com/isthmus-mesh/isthmus/internal/wait"
)

// pace bounds the writes per second. It has no order: waiting keys are ordered by the
// controller's queue.
type pace struct {
	perSecond, burst float64

	mu     sync.Mutex
	tokens float64
	at     time.Time // when tokens was correct
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
