package istio

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// Defect L: a deposed leader went on writing. A replica that is paused in the
// middle of a write, and goes on when another has long taken over, undoes
// nothing: not what it was about to create, change or delete.
func TestDefectLDeposedWriterUndoesNothing(t *testing.T) {
	t.Parallel()
	const host = "a.example"
	tests := []struct {
		name   string
		before func(*registry)   // what both have written
		old    func(r *registry) // what the first is about to write
		now    func(r *registry) // what the second writes meanwhile
		want   string
	}{
		{
			"create", func(*registry) {},
			func(r *registry) { r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1")) },
			func(r *registry) { r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.2")) },
			"10.0.0.2",
		},
		{
			"update", func(r *registry) { r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1")) },
			func(r *registry) { r.say(shop.Instance("sc", host, "10.0.0.9")) },
			func(r *registry) { r.say(shop.Instance("sc", host, "10.0.0.2")) },
			"10.0.0.1 10.0.0.2",
		},
		{
			"delete", func(r *registry) { r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1")) },
			func(r *registry) { r.say(shop.NoService("sc", host), shop.NoInstance("sc", host, "10.0.0.1")) },
			func(r *registry) { r.say(shop.Instance("sc", host, "10.0.0.2")) },
			"10.0.0.1 10.0.0.2",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			api, old, now := newAPI(t), newRegistry("sc"), newRegistry("sc")
			for _, r := range []*registry{old, now} {
				test.before(r)
				r.listed("sc")
			}
			first := start(t, api, old, nil)
			settled(t, first)
			paused, goOn, deposed := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var held, gone atomic.Bool
			api.Before(func(verb, path string) {
				switch {
				case verb == "GET" || !strings.HasSuffix(path, host):
				case held.CompareAndSwap(false, true):
					close(paused)
					<-goOn
				case gone.Load(): // else both would restore what the other changed, again and again
					<-deposed
				}
			})
			test.old(old)
			<-paused
			second := start(t, api, now, nil)
			test.now(now)
			wants(t, api, host, test.want)
			settled(t, second)
			// The first learns nothing of it before its write arrives.
			gone.Store(true)
			close(goOn)
			await(t, "the write that was paused", func() error {
				if first.Status().Failures == 0 {
					return fmt.Errorf("it was not rejected: %v", api.Writes())
				}
				return nil
			})
			first.depose()
			close(deposed)
			first.stop()
			wants(t, api, host, test.want)
		})
	}
}

// The lease: one writes, the other is ready and takes over; each ends its term
// before it gives the lease back.
func TestDefectLStandbyTakesOverWithoutListingAnew(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.say(shop.Service("sc", "a.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.listed("sc")
	elected := func(c *Config, _ *Options) { c.LeaderElection = DefaultConfig().LeaderElection }
	first := start(t, api, r, elected)
	wants(t, api, "a.example", "10.0.0.1")
	var mu sync.Mutex
	lists := 0
	second := start(t, api, r, elected)
	await(t, "the other to stand by", func() error {
		if s := second.Status(); s.Leading || s.Objects != 1 || s.Leader == "" {
			return fmt.Errorf("leading %v, objects %d, leader %q", s.Leading, s.Objects, s.Leader)
		}
		return nil
	})
	api.Before(func(verb, path string) {
		if verb == "GET" && strings.HasSuffix(path, "/serviceentries") {
			mu.Lock()
			defer mu.Unlock()
			lists++
		}
	})
	first.stop()
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"))
	wants(t, api, "a.example", "10.0.0.1 10.0.0.2")
	mu.Lock()
	defer mu.Unlock()
	if lists > 0 {
		t.Errorf("%d lists were needed to take over", lists)
	}
	if s := second.Status(); !s.Leading || s.Drift != 0 {
		t.Errorf("leading %v, drift %d", s.Leading, s.Drift)
	}
}

// A run that ends has ended: nothing is written after it returned.
func TestDefectLNothingIsWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	r.listed("sc")
	w, err := newWriter(quick(), Options{Instance: "test"}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	r.readers = append(r.readers, w)
	for i := range 200 {
		host := fmt.Sprintf("h%d.example", i)
		r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	await(t, "the first writes", func() error {
		if len(api.Writes()) == 0 {
			return fmt.Errorf("none yet")
		}
		return nil
	})
	cancel()
	<-ended
	wrote := len(api.Writes())
	r.say(shop.Service("sc", "late.example"))
	if again := len(api.Writes()); again != wrote || w.Status().Leading {
		t.Errorf("%d writes came after the end", again-wrote)
	}
}
