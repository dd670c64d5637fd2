package push

import (
	"context"
	"slices"
	"time"
)

// endsApart is the longest pause between two ends of subscribers.
const endsApart = 20 * time.Millisecond

// EndAll ends every subscriber, one after the other and evenly spread over a duration. It
// takes less time if there are few, see endsApart. The spread keeps clients from
// reconnecting to other replicas all at once. A subscriber is served until its end. If ctx
// ends, the rest end at once.
func (e *Engine) EndAll(ctx context.Context, over time.Duration) {
	list := slices.Collect(e.all())
	apart := min(over/time.Duration(max(len(list), 1)), endsApart)
	next := time.NewTimer(0)
	defer next.Stop()
	began := time.Now()
	for i, s := range list {
		next.Reset(time.Until(began.Add(time.Duration(i) * apart)))
		select {
		case <-next.C:
		case <-ctx.Done():
		}
		s.Close()
	}
	for s := range e.all() { // subscribers that connected meanwhile
		s.Close()
	}
}
