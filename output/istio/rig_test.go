package istio

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// await asks again and again until there is no error. It pauses four times as long as a check takes: the
// race detector has one processor, and a check of many objects would leave little of it to the writer.
func await(t testing.TB, what string, check func() error) {
	t.Helper()
	until.NoError(t, 2*time.Millisecond, what, func() error {
		begun := time.Now()
		err := check()
		if err != nil {
			time.Sleep(4 * time.Since(begun))
		}
		return err
	})
}

func newAPI(t *testing.T) *kubeapi.Server {
	t.Helper()
	api := kubeapi.New()
	t.Cleanup(api.Close)
	return api
}

// registry is what all sources together say, and who is notified.
type registry struct {
	mu       sync.Mutex
	builder  *catalog.Builder
	names    []string
	records  map[model.Ref]model.Record
	revision uint64
	primed   map[string]bool
	readers  []*Writer
}

// newRegistry returns a registry of sources, none of which has been listed.
func newRegistry(sources ...string) *registry {
	r := &registry{names: sources, builder: catalog.NewBuilder(sources), primed: map[string]bool{}, records: map[model.Ref]model.Record{}}
	for _, name := range sources {
		r.primed[name] = false
	}
	return r
}

// say applies events and tells the readers, and nobody while the registry has none.
func (r *registry) say(events ...model.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision++
	for i, e := range events {
		switch e := e.(type) {
		case model.Upsert:
			e.Record.Revision = r.revision
			r.records[e.Record.Ref], events[i] = e.Record, e
		case model.Delete:
			delete(r.records, e.Record.Ref)
		}
	}
	change := r.builder.Apply(r.revision, events)
	change.Committed = time.Now()
	for _, w := range r.readers {
		w.Publish(r.builder.Snapshot(), change, r.complete())
	}
}

// listed says that sources have been listed.
func (r *registry) listed(sources ...string) {
	var events []model.Event
	for _, name := range sources {
		r.mu.Lock()
		r.primed[name] = true
		r.mu.Unlock()
		ref := model.Ref{Kind: model.KindSource, Key: model.Key{Source: name, Name: name}}
		events = append(events, model.Upsert{Record: model.Record{Ref: ref, Spec: model.SourceMark{}}})
	}
	r.say(events...)
}

// sources are those that there are, in order.
func (r *registry) sources() []string { return r.names }

func (r *registry) complete() bool {
	for _, primed := range r.primed {
		if !primed {
			return false
		}
	}
	return true
}

// snapshot is what all sources together say now.
func (r *registry) snapshot() *catalog.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.builder.Snapshot()
}

// List implements [supervise.Store].
func (r *registry) List(f model.Filter) iter.Seq[model.Record] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []model.Record
	for ref, rec := range r.records {
		if f.Matches(ref) {
			found = append(found, rec)
		}
	}
	slices.SortFunc(found, func(a, b model.Record) int { return a.Compare(b.Ref) })
	return slices.Values(found)
}

// Revision implements [supervise.Store].
func (r *registry) Revision() uint64 { return 0 }

// Commit implements [supervise.Store].
func (r *registry) Commit(_ context.Context, c model.Commit) (uint64, error) {
	var events []model.Event
	for _, w := range c.Writes {
		if w.Delete {
			events = append(events, model.Delete{Record: w.Record})
		} else {
			events = append(events, model.Upsert{Record: w.Record})
		}
	}
	r.say(events...)
	return r.snapshot().Revision, nil
}

// quick is a configuration that waits for nothing.
func quick() Config {
	c := DefaultConfig()
	c.Debounce = world.Debounce{}
	c.LeaderElection.Enabled = false
	c.QPS, c.Burst = 10_000, 10_000
	return c
}

// running is a writer that runs until it is stopped, at the latest at the end of the test.
type running struct {
	*Writer
	depose func() // takes its right to write away
	stop   func() // and waits until it has ended
}

// start runs a writer with what the registry says.
func start(t *testing.T, api *kubeapi.Server, r *registry, adapt func(*Config, *Options)) *running {
	t.Helper()
	return startAt(t, &rest.Config{Host: api.URL()}, r, adapt)
}

// startAt runs a writer to whatever is there.
func startAt(t *testing.T, target *rest.Config, r *registry, adapt func(*Config, *Options)) *running {
	t.Helper()
	c, o := quick(), Options{Instance: "test"}
	if adapt != nil {
		adapt(&c, &o)
	}
	w, err := newWriter(c, o, target)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.readers = append(r.readers, w)
	w.Publish(r.builder.Snapshot(), catalog.Change{}, r.complete())
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return &running{w, cancel, func() {
		stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range r.readers {
			if r.readers[i] == w {
				r.readers = append(r.readers[:i:i], r.readers[i+1:]...)
				break
			}
		}
	}}
}

const entries = "networking.istio.io/v1/namespaces/shop/serviceentries/"

// addresses are those written for a host in its first object.
func addresses(api *kubeapi.Server, host string) string {
	return addressesIn(api.Get(entries + host))
}

// addressesIn are those of the endpoints of an object.
func addressesIn(o kubeapi.Object) string {
	if o == nil {
		return "no object"
	}
	spec, _ := o["spec"].(kubeapi.Object)
	list, _ := spec["endpoints"].([]any)
	var all []string
	for _, e := range list {
		endpoint, _ := e.(kubeapi.Object)
		all = append(all, fmt.Sprint(endpoint["address"]))
	}
	return strings.Join(all, " ")
}

// wants waits until the endpoints of a host are written as listed.
func wants(t *testing.T, api *kubeapi.Server, host, list string) {
	t.Helper()
	await(t, host+" to be written", func() error {
		if got := addresses(api, host); got != list {
			return fmt.Errorf("%q is written, want %q", got, list)
		}
		return nil
	})
}

// settled waits until nothing is pending.
func settled(t *testing.T, w *running) {
	t.Helper()
	await(t, "the writer to come to rest", func() error {
		if s := w.Status(); s.Pending > 0 || len(s.Waiting) > 0 || !s.Leading {
			return fmt.Errorf("pending %d, waiting for %v, leading %v, failing %v", s.Pending, s.Waiting, s.Leading, s.Failing)
		}
		return nil
	})
}

// fails waits until a key fails with a reason that has all of the parts.
func fails(t *testing.T, w *running, object string, parts ...string) {
	t.Helper()
	await(t, object+" to fail", func() error {
		for _, f := range w.Status().Failing {
			if f.Key.String() != object {
				continue
			}
			for _, part := range parts {
				if !strings.Contains(f.Err.Error(), part) {
					return fmt.Errorf("it says %q, without %q", f.Err.Error(), part)
				}
			}
			return nil
		}
		return fmt.Errorf("failing: %v", w.Status().Failing)
	})
}

// metric is the value of a metric that has no labels; -1 if there is none.
func metric(all []output.Metric, name string) float64 {
	for _, m := range all {
		if m.Name == name && len(m.Labels) == 0 {
			return m.Value
		}
	}
	return -1
}
