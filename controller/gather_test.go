package controller

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// usual is the default of the output that uses it most.
var usual = world.Debounce{Quiet: time.Second, Max: 10 * time.Second, Events: 1000}

// deliveries notes what came when.
type deliveries struct {
	mu    sync.Mutex
	start time.Time
	list  []string
	slow  time.Duration // how long each takes
}

func (d *deliveries) take(keys []string) {
	d.mu.Lock()
	d.list = append(d.list, fmt.Sprintf("%s %v", time.Since(d.start), keys))
	d.mu.Unlock()
	time.Sleep(d.slow)
}

func gathering(t *testing.T, b world.Debounce, slow time.Duration) (*Gatherer[string], *deliveries) {
	t.Helper()
	d := &deliveries{start: time.Now(), slow: slow}
	g := NewGatherer(b.Due, d.take)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); g.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return g, d
}

func (d *deliveries) check(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(want, d.list); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

func TestBurstIsOneDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := gathering(t, usual, 0)
		for range 5 {
			g.Add("a", "b")
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		d.check(t, "3s [a b]")
	})
}

func TestTrickleIsDeliveredAtItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := gathering(t, usual, 0)
		for range 18 { // 12 s, never quiet
			g.Add("a")
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		d.check(t, "10s [a]", "12.9s [a]")
	})
}

// TestNoKeyWaitsForAnother has a key change all the time, and others once.
func TestNoKeyWaitsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := gathering(t, usual, 0)
		for i := range 4 {
			g.Add("busy", strconv.Itoa(i))
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		d.check(t, "1s [0]", "1.7s [1]", "2.4s [2]", "3.1s [busy 3]")
	})
}

func TestEnoughEventsAreDeliveredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := gathering(t, usual, 0)
		for range 999 {
			g.Add("a")
		}
		synctest.Wait()
		d.check(t)
		g.Add("a", "b")
		synctest.Wait()
		d.check(t, "0s [a]")
		time.Sleep(time.Minute)
		d.check(t, "0s [a]", "1s [b]")
	})
}

func TestWhatComesDuringADeliveryIsInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d := gathering(t, usual, time.Minute)
		g.Add("a")
		time.Sleep(5 * time.Second) // the delivery is under way
		g.Add("a")
		g.Add("b")
		time.Sleep(5 * time.Minute)
		d.check(t, "1s [a]", "1m1s [a b]")
	})
}
