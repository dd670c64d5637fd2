package istio

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// waitsFor checks that a writer waits, for how long, and that the reason ends with the
// missing facts.
func waitsFor(t *testing.T, w *Writer, age, missing string) {
	t.Helper()
	state := opened{w}.Report().Writer
	if state.State != "waiting" || state.Reason != "not known yet: "+missing || state.Age != age {
		t.Errorf("state %s for %s: %s", state.State, state.Age, state.Reason)
	}
}

// Nothing is written before both the catalog and the API server's objects are known. Until
// then the writer names the missing ones, with an age. The watch that listed the objects
// goes on.
func TestNothingIsWrittenBeforeCatalogAndListing(t *testing.T) {
	t.Parallel()
	for name, adapt := range map[string]func(*Config, *Options){"alone": nil, "elected": elected} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { prime(t, adapt) })
		})
	}
}

// entryWrites counts the writes to ServiceEntries so far.
func entryWrites(api *kubeapi.Piped) int { return len(writesTo(api.Server, "/serviceentries/")) }

func prime(t *testing.T, adapt func(*Config, *Options)) {
	api, r := piped(t), newRegistry("sc")
	r.say(shop.Service("sc", "old.example"), shop.Service("sc", "a.example"))
	r.listed("sc")
	first := startAt(t, api.Config(), r, nil)
	for _, host := range []string{"old.example", "a.example"} {
		within(t, time.Minute, "the objects of an earlier run", hasAddresses(api.Server, host, ""))
	}
	first.stop()
	before := entryWrites(api)

	listing := make(chan struct{})
	list := sync.OnceFunc(func() { close(listing) })
	t.Cleanup(list)
	var lists atomic.Int32
	api.Before(func(verb, path string) {
		if verb == http.MethodGet && strings.HasSuffix(path, "/serviceentries") {
			lists.Add(1)
			<-listing
		}
	})
	w := unprimed(t, api, adapt)
	time.Sleep(2 * time.Minute)
	waitsFor(t, w, "2m0s", "the catalog, the API server's listing of serviceentries")

	r.say(shop.NoService("sc", "old.example"), shop.Instance("sc", "a.example", "10.0.0.1"))
	r.readers = append(r.readers, w)
	w.Publish(r.snapshot(), catalog.Change{}, true)
	r.say(shop.Instance("sc", "a.example", "10.0.0.2"))
	r.say(shop.Instance("sc", "a.example", "10.0.0.3"))
	time.Sleep(time.Minute)
	waitsFor(t, w, "3m0s", "the API server's listing of serviceentries")
	if n := entryWrites(api) - before; n > 0 || w.Status().Pending > 0 {
		t.Fatalf("%d writes, and %d keys wait", n, w.Status().Pending)
	}

	list()
	within(t, time.Minute, "the endpoints", hasAddresses(api.Server, "a.example", "10.0.0.1 10.0.0.2 10.0.0.3"))
	within(t, time.Minute, "the service to go", hasAddresses(api.Server, "old.example", "no object"))
	if n := entryWrites(api) - before; n != 2 {
		t.Errorf("two objects differ, and there were %d writes", n)
	}
	asked := lists.Load()
	api.Delete(entries + "a.example")
	within(t, time.Minute, "the object to be restored", hasAddresses(api.Server, "a.example", "10.0.0.1 10.0.0.2 10.0.0.3"))
	if again := lists.Load(); again != asked {
		t.Errorf("%d more requests were needed to follow", again-asked)
	}
	if state := (opened{w}).Report().Writer; state.State != "writing" || state.Reason != "" || state.Age != "" {
		t.Errorf("state %s for %s: %s", state.State, state.Age, state.Reason)
	}
}

// unprimed runs a writer that no catalog was published to.
func unprimed(t *testing.T, api *kubeapi.Piped, adapt func(*Config, *Options)) *Writer {
	t.Helper()
	c, o := quick(), Options{Instance: "test"}
	if adapt != nil {
		adapt(&c, &o)
	}
	w, err := newWriter(c, o, api.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

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
