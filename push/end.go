package push

import (
	"context"
	"slices"
	"time"
)

// endsApart is how far apart subscribers are ended that are few.
const endsApart = 20 * time.Millisecond

// EndAll ends every subscriber, one after the other and evenly spread over a time, or
// over less if they are few, so that those who come back elsewhere do not all come at
// once. Until its turn comes a subscriber is served on. If ctx ends, the rest end at once.
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
	for s := range e.all() { // who came meanwhile
		s.Close()
	}
}
