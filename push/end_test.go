package push

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Subscribers are ended one after the other, over no more than the time there is.
func TestEndsAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		subscribers int
		took        time.Duration
	}{
		"few":  {10, 9 * endInterval},
		"many": {1000, 999 * time.Second / 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := run(t, Config{})
				for range c.subscribers {
					e.Connect(Info{}, world.Client{})
				}
				began, most := time.Now(), 0
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					e.EndAll(context.Background(), time.Second)
				}()
				for left := c.subscribers; left > 0; {
					synctest.Wait()
					e.mu.Lock()
					now := len(e.subscribers)
					e.mu.Unlock()
					most, left = max(most, left-now), now
					if left > 0 {
						time.Sleep(time.Millisecond)
					}
				}
				<-ended
				if took := time.Since(began).Round(time.Millisecond); took != c.took {
					t.Errorf("they ended within %s, not %s", took, c.took)
				}
				if most > 2 {
					t.Errorf("%d ended at once", most)
				}
			})
		})
	}
}

// Once there is no more time, the rest end at once. Without a subscriber there is nothing to
// wait for, and who comes while others are ended is ended as well.
func TestEndsThatHaveNoMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := run(t, Config{})
		began := time.Now()
		if e.EndAll(context.Background(), time.Hour); time.Since(began) > 0 {
			t.Errorf("to end nobody took %s", time.Since(began))
		}
		for range 1000 {
			e.Connect(Info{}, world.Client{})
		}
		const limit = 100 * time.Millisecond
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		time.AfterFunc(limit/2, func() { e.Connect(Info{}, world.Client{}) })
		began = time.Now()
		e.EndAll(ctx, time.Hour)
		if took := time.Since(began); took != limit {
			t.Errorf("they ended within %s, not %s", took, limit)
		}
		for s := range e.all() {
			t.Errorf("%s was not ended", s.Info.ID)
		}
	})
}
