package istio

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// fleet is so many services of a source, the first of that number, with so many
// endpoints each.
func fleet(source string, first, services, endpoints int) (events []model.Event) {
	for i := first; i < first+services; i++ {
		events = append(events, shop.Service(source, hostOf(i)))
		for e := range endpoints {
			events = append(events, shop.Instance(source, hostOf(i), fmt.Sprintf("10.0.%d.%d", i, e+1)))
		}
	}
	return events
}

func hostOf(i int) string { return fmt.Sprintf("s%02d.example", i) }

// written has an earlier process write what sources say.
func written(t *testing.T, api *kubeapi.Server, sources []string, events ...model.Event) {
	t.Helper()
	r := newRegistry(sources...)
	r.say(events...)
	r.listed(sources...)
	writeAll(t, start(t, api, r, nil), r)
}

// writeAll stops a writer once it has written everything.
func writeAll(t *testing.T, w *running, r *registry) {
	t.Helper()
	await(t, "everything to be written", func() error {
		if s := w.Status(); s.Pending > 0 || s.Objects == 0 || s.Objects != r.builder.Snapshot().Totals().Services {
			return fmt.Errorf("%d objects, %d pending", s.Objects, s.Pending)
		}
		return nil
	})
	w.stop()
}

// guarded is a writer that has what the API server has judged by who reads the
// sources.
type guarded struct {
	*running
	*readers
	api *kubeapi.Server
	t   *testing.T
}

// readers are the supervisors of the sources of a registry, which list when they
// are changed to what the registry says.
type readers struct {
	registry *registry
	hold     hold.Config
	// unread has each listing of any source leave something out.
	unread atomic.Bool

	ctx     context.Context
	running sync.WaitGroup
	mu      sync.Mutex
	of      map[string]*reader
}

// reader is a source that lists when it is asked to.
type reader struct {
	*supervise.Supervisor
	listings chan chan error
	end      context.CancelFunc
	list     func() model.Listing
}

// Run implements [source.Source].
func (r *reader) Run(ctx context.Context, sink source.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case done := <-r.listings:
			done <- sink.Replace(ctx, r.list())
		}
	}
}

func (r *readers) reader(name string) *reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[name] == nil {
		one := &reader{listings: make(chan chan error), list: func() model.Listing { return r.listing(name) }}
		one.Supervisor = supervise.New(name, one, r.registry, supervise.Config{Hold: r.hold})
		ctx, end := context.WithCancel(r.ctx)
		one.end = end
		r.running.Go(func() { _ = one.Supervisor.Run(ctx) })
		r.of[name] = one
	}
	return r.of[name]
}

// listing is everything that the registry says of a source.
func (r *readers) listing(name string) (l model.Listing) {
	owned := map[model.Ref][]model.Record{}
	for rec := range r.registry.List(model.Filter{Source: name}) {
		owned[rec.Owner] = append(owned[rec.Owner], rec)
	}
	for _, rec := range owned[model.Ref{}] {
		if rec.Kind != model.KindSource {
			l.Objects = append(l.Objects, model.Object{Record: rec, Owned: owned[rec.Ref]})
		}
	}
	if r.unread.Load() {
		l.Rejected = []model.Rejection{{Ref: shop.ServiceRef(name, "refused.example"), Reason: "it cannot be read"}}
	}
	return l
}

// Offer implements [source.Judge].
func (r *readers) Offer(ctx context.Context, b source.Baseline) error {
	return r.reader(b.Source).Offer(ctx, b)
}

// Listed has a source listed once more.
func (r *readers) Listed(name string) {
	done := make(chan error, 1)
	r.reader(name).listings <- done
	<-done
}

// Released has an operator release a source.
func (r *readers) Released(name string) { _, _ = r.reader(name).Release(r.ctx) }

// remove ends a source, with its records.
func (r *readers) remove(name string) {
	r.mu.Lock()
	one := r.of[name]
	delete(r.of, name)
	r.mu.Unlock()
	if one != nil {
		one.end()
	}
	_ = supervise.Remove(r.ctx, r.registry, name)
}

// RemoveSource takes a source out of the configuration.
func (g *guarded) RemoveSource(name string) {
	g.remove(name)
	g.Writer.RemoveSource(name)
}

// judged starts who reads the sources of a registry, until the end of the test.
func judged(t *testing.T, r *registry, hold hold.Config) *readers {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	all := &readers{registry: r, hold: hold, ctx: ctx, of: map[string]*reader{}}
	t.Cleanup(func() { end(); all.running.Wait() })
	return all
}

// fresh starts a process that knows nothing from before. It has not seen
// any listing yet.
func fresh(t *testing.T, api *kubeapi.Server, r *registry, hold hold.Config, adapt func(*Config, *Options)) *guarded {
	t.Helper()
	return freshAt(t, api, &rest.Config{Host: api.URL()}, r, hold, adapt)
}

// freshAt is [fresh] for an API server that is reached otherwise.
func freshAt(t *testing.T, api *kubeapi.Server, target *rest.Config, r *registry, hold hold.Config, adapt func(*Config, *Options)) *guarded {
	t.Helper()
	g := &guarded{api: api, t: t, readers: judged(t, r, hold)}
	g.running = startAt(t, target, r, func(c *Config, o *Options) {
		o.Judge, o.Sources = g.readers, r.sources
		if adapt != nil {
			adapt(c, o)
		}
	})
	return g
}

// held returns what is held of the source sc.
func (g *guarded) held() (drops []model.HeldDrop, ok bool) {
	mark, _ := g.registry.snapshot().Mark("sc")
	j, ok := mark.Judgements.Of(g.baselines.Name)
	return j.Held, ok
}

// lacks waits until the source sc lacks so many endpoints.
func (g *guarded) lacks(want int) {
	g.t.Helper()
	await(g.t, "what the source lacks", func() error {
		drops, ok := g.held()
		if got := endpointsOfDrops(drops); !ok || got != want {
			return fmt.Errorf("it lacks %d endpoints, want %d (judged: %t)", got, want, ok)
		}
		return nil
	})
}

// awaits says that a source is not judged yet.
func (g *guarded) awaits(name string) error {
	mark, _ := g.registry.snapshot().Mark(name)
	if _, ok := mark.Judgements.Of(g.baselines.Name); !ok {
		return fmt.Errorf("source %s is not judged", name)
	}
	return nil
}

func (g *guarded) isJudged() bool {
	_, ok := g.held()
	return ok
}

// unless is the source sc, until it has left.
func unless(left *atomic.Bool) func() []string {
	return func() []string {
		if left.Load() {
			return nil
		}
		return []string{"sc"}
	}
}

// suspected counts the endpoints whose loss nothing but rejections keeps from being confirmed.
func (g *guarded) suspected() int {
	drops, _ := g.held()
	return endpointsOfDrops(slices.DeleteFunc(slices.Clone(drops), func(d model.HeldDrop) bool { return d.Lasting }))
}

func endpointsOfDrops(drops []model.HeldDrop) (n int) {
	for _, d := range drops {
		for _, item := range d.Items {
			n += len(item.Endpoints)
		}
	}
	return n
}

// holds waits until just these are held, at rest, and says why the first one is.
func (g *guarded) holds(hosts ...string) (first write.Held) {
	g.t.Helper()
	await(g.t, "what is held", func() error {
		s := g.Status()
		var held []string
		for _, h := range s.Held {
			held = append(held, h.Name)
		}
		if s.Pending > 0 || !slices.Equal(held, hosts) {
			return fmt.Errorf("%d pending, held %q, want %q", s.Pending, held, hosts)
		}
		if len(hosts) > 0 {
			first = s.Held[0]
		}
		return nil
	})
	return first
}

// holdsFor waits until just these are held, the first one for a reason with this in it.
func (g *guarded) holdsFor(reason string, hosts ...string) (first write.Held) {
	g.t.Helper()
	await(g.t, "why it is held", func() error {
		if first = g.holds(hosts...); !strings.Contains(first.Reason, reason) {
			return fmt.Errorf("%s is held: %d endpoints, %s", first.Name, first.Endpoints, first.Reason)
		}
		return nil
	})
	return first
}

// deleted checks which objects were deleted ever.
func (g *guarded) deleted(hosts ...string) {
	g.t.Helper()
	var got []string
	for _, write := range g.api.Writes() {
		if path, ok := strings.CutPrefix(write, "DELETE "+entries); ok {
			got = append(got, path)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, hosts) {
		g.t.Errorf("deleted: %q, want %q", got, hosts)
	}
}

func hosts(first, n int) (names []string) {
	for i := first; i < first+n; i++ {
		names = append(names, hostOf(i))
	}
	return names
}

// A policy whose time is over between two listings, and one whose time never is.
var (
	brief = hold.Config{Share: 0.5, Min: 10, For: time.Millisecond}
	long  = hold.Config{Share: 0.5, Min: 10, For: time.Hour}
)

// list tells of one more complete listing, some time after the one before.
func (g *guarded) list() {
	<-time.After(2 * time.Millisecond)
	g.Listed("sc")
}
