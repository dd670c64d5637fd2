package istio

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// A live change is written before the objects that differ at the start, however many.
func TestLiveChangeOvertakesTheObjectsOfTheStart(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	host := func(i int) string { return fmt.Sprintf("s%03d.example", i) }
	const services = 60
	for i := range services {
		r.say(shop.Service("sc", host(i)), shop.Instance("sc", host(i), "10.0.0.1"))
	}
	r.listed("sc")
	first := start(t, api, r, nil)
	settled(t, first)
	first.stop()
	for i := range services {
		r.say(shop.Instance("sc", host(i), "10.0.0.2"))
	}
	w := start(t, api, r, func(c *Config, _ *Options) { c.QPS, c.Burst = 5, 1 })
	await(t, "everything that differs to wait", func() error {
		if s := w.Status(); len(s.Waiting) > 0 || s.Throttled[controller.Urgent] < services-10 {
			return fmt.Errorf("waiting for %v, throttled: %v", s.Waiting, s.Throttled)
		}
		return nil
	})
	r.say(shop.Instance("sc", host(services-1), "10.0.0.3"))
	wants(t, api, host(services-1), "10.0.0.1 10.0.0.2 10.0.0.3")
	if s := w.Status(); s.Pending < services/2 {
		t.Errorf("%d of %d keys are left: the live change overtook none", s.Pending, services)
	}
}

// What others delete and change while the API server cannot be watched is seen afterwards.
func TestDeletionsDuringAnOutageAreSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, r := piped(t), newRegistry("sc")
		hosts := []string{"a.example", "b.example", "c.example"}
		for _, host := range hosts {
			r.say(shop.Service("sc", host), shop.Instance("sc", host, "10.0.0.1"))
		}
		r.listed("sc")
		w := startAt(t, api.Config(), r, nil)
		for _, host := range hosts {
			within(t, time.Minute, host, hasAddresses(api.Server, host, "10.0.0.1"))
		}
		api.Down(true)
		api.Delete(entries + "a.example")
		changed := api.Get(entries + "b.example")
		changed["spec"].(kubeapi.Object)["endpoints"] = []any{kubeapi.Object{"address": "192.0.2.1"}}
		api.Put(entries+"b.example", changed)
		before := len(api.Writes())
		time.Sleep(time.Minute)
		api.Down(false)
		for _, host := range hosts {
			within(t, 5*time.Second, host, hasAddresses(api.Server, host, "10.0.0.1"))
		}
		within(t, 5*time.Second, "the drift", func() error {
			if s := w.Status(); s.Drift != 2 || s.Objects != len(hosts) || s.Pending > 0 {
				return fmt.Errorf("drift %d, %d objects, %d pending", s.Drift, s.Objects, s.Pending)
			}
			return nil
		})
		writes := api.Writes()[before:]
		if len(writes) != 2 || slices.ContainsFunc(writes, func(w string) bool { return strings.HasSuffix(w, "c.example") }) {
			t.Errorf("it wrote %v", writes)
		}
	})
}
