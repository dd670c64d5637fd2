package istio

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// A source that is taken out of the configuration is no suspicious drop: its removal is
// an operator's word.
func TestHoldEndsWithItsSource(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	var left atomic.Bool
	g := fresh(t, api, r, long, func(_ *Config, o *Options) { o.Sources = unless(&left) })
	g.Listed("sc")
	g.lacks(40)
	g.holds(hosts(0, 20)...)
	left.Store(true)
	g.RemoveSource("sc")
	g.holds()
	g.deleted(hosts(0, 20)...)
}

// A source that is taken out by mistake, and put back, is a new one: what is
// still there of it waits for its first listing and is compared with that.
func TestSourceThatIsBackIsComparedAnew(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string][]string{"with a folder": {"sc"}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, r := newAPI(t), newRegistry("sc")
			written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
			r.say(fleet("sc", 0, 20, 2)...)
			r.listed("sc")
			var left atomic.Bool
			g := fresh(t, api, r, long, func(_ *Config, o *Options) {
				o.Sources, o.Restored = unless(&left), restored
			})
			g.Listed("sc")
			g.holds()
			api.Reject(func(verb, _ string) *kubeapi.Rejection {
				if verb != http.MethodDelete {
					return nil
				}
				return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "not yet"}
			})
			left.Store(true)
			var gone []model.Event
			for i := range 20 {
				gone = append(gone, shop.NoService("sc", hostOf(i)), shop.NoInstance("sc", hostOf(i), fmt.Sprintf("10.0.%d.1", i)), shop.NoInstance("sc", hostOf(i), fmt.Sprintf("10.0.%d.2", i)))
			}
			r.say(gone...)
			g.RemoveSource("sc")
			fails(t, g.running, "ServiceEntry shop/"+hostOf(19), "not yet")
			left.Store(false)
			g.RemoveSource("sc") // which it may notice late
			r.say(fleet("sc", 0, 1, 2)...)
			g.holds(hosts(1, 19)...)
			api.Reject(nil)
			g.Listed("sc")
			g.lacks(38)
			g.holds(hosts(1, 19)...)
			g.deleted()
		})
	}
}

// A replica that stood by while a loss was confirmed does not hold it again
// when it takes over; one that has just come has its own listings to wait for.
func TestNextLeaderGoesByItsOwnListings(t *testing.T) {
	t.Parallel()
	for name, confirmed := range map[string]bool{"long there": true, "just come": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, r := newAPI(t), newRegistry("sc")
			written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
			r.listed("sc")
			elect := func(c *Config, _ *Options) { c.LeaderElection.Enabled = true }
			first := fresh(t, api, r, long, elect)
			first.Listed("sc")
			first.lacks(40)
			first.holds(hosts(0, 20)...)
			standby := fresh(t, api, r, brief, elect)
			standby.Listed("sc")
			standby.lacks(40)
			if confirmed {
				standby.list()
				standby.lacks(40)
				standby.list()
				standby.lacks(0)
			}
			if standby.Status().Leading {
				t.Fatal("it leads already")
			}
			first.stop()
			settled(t, standby.running)
			if !confirmed {
				standby.holds(hosts(0, 20)...)
				standby.deleted()
				return
			}
			standby.holds()
			standby.deleted(hosts(0, 20)...)
		})
	}
}

func TestPlanSaysWhatWouldBeHeld(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 19, 2, 2)...)
	r.listed("sc")
	all := judged(t, r, long)
	w, err := newWriter(quick(), Options{Instance: "test", Judge: all, Sources: r.sources}, &rest.Config{Host: api.URL()})
	if err != nil {
		t.Fatal(err)
	}
	w.Publish(r.builder.Snapshot(), catalog.Change{}, true)
	r.readers = append(r.readers, w)
	all.Listed("sc")
	actions, _, err := w.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, a := range actions {
		reason, _, _ := strings.Cut(a.Reason, ";")
		count[string(a.Verb)+": "+reason]++
	}
	for what, want := range map[string]int{
		"leave: the first listing of source sc since the start lacks 38 of the 40 endpoints that are written here": 19,
		"leave: it is up to date": 1, "create: it is missing": 1,
	} {
		if count[what] != want {
			t.Errorf("%d times %q, want %d, of %v", count[what], what, want, count)
		}
	}
}

// Whatever a process that knows nothing finds, and whatever moves between the
// objects of the service meanwhile: who is listed all the time, or is missing
// since the first listing, is there until the source is released, and then all
// is as it is listed.
func TestNobodyIsAbsentWhileHeld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		api := kubeapi.New()
		defer api.Close()
		size := rapid.IntRange(1, 4).Draw(rt, "shard size")
		shards := func(c *Config, _ *Options) { c.ShardSize = size }
		r, present := newRegistry("sc"), map[string]bool{}
		r.say(shop.Service("sc", "a.example"))
		r.say(drawMoves(rt, present)...)
		r.listed("sc")
		w := start(t, api, r, shards)
		rests(t, w, r, api)
		w.stop()

		before, always, ever := claimsOf(api.Everything()).all(), map[string]bool{}, map[string]bool{}
		had, fewer := 0, false // a service that has as many endpoints as before has lost none
		for address := range before {
			if !strings.Contains(address, " ") {
				had++
			}
		}
		look := func(first bool) {
			now := map[string]bool{}
			service, _ := r.snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
			for _, port := range service.Ports {
				for e := range service.Endpoints(port.Number).All() {
					now[e.Address], ever[e.Address] = true, true
					always[e.Address] = always[e.Address] || first
				}
			}
			fewer = fewer || first && len(present) < had
			for address := range always {
				always[address] = always[address] && now[address]
			}
		}
		r.say(drawMoves(rt, present)...)
		look(true)
		h := recorded(api)
		g := fresh(t, api, r, hold.Config{Share: 0, Min: 1, For: time.Hour}, shards)
		defer g.stop()
		g.Listed("sc")
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			await(t, "the writer to come to rest", func() error {
				if s := g.Status(); s.Pending > 0 || !s.Leading || !g.isJudged() {
					return fmt.Errorf("%d pending", s.Pending)
				}
				return nil
			})
			r.say(drawMoves(rt, present)...)
			look(false)
		}
		settled(t, g.running)
		states, wrong := h.take()
		for i, state := range states {
			for address := range before {
				if !strings.Contains(address, " ") && (always[address] || fewer && !ever[address]) && !state.all()[address] {
					rt.Fatalf("after write %d, %s is absent:\nbefore: %v\nthen: %v", i+1, address, before, states)
				}
			}
		}
		g.Released("sc")
		rests(t, g.running, r, api)
		if _, more := h.take(); len(wrong)+len(more) > 0 {
			rt.Fatalf("Istio would reject: %v %v", wrong, more)
		}
	})
}
