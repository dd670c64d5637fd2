package istio

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// fleet is so many services of a source, the first of that number, with so many
// endpoints each.
func fleet(source string, first, services, endpoints int) (events []model.Event) {
	for i := first; i < first+services; i++ {
		events = append(events, service(source, hostOf(i)))
		for e := range endpoints {
			events = append(events, instance(source, hostOf(i), fmt.Sprintf("10.0.%d.%d", i, e+1)))
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
	w := start(t, api, r, nil)
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
	hold     source.Hold
	// unread has each listing of any source leave something out.
	unread atomic.Bool

	ctx     context.Context
	running sync.WaitGroup
	mu      sync.Mutex
	of      map[string]*reader
}

// reader is a source that lists when it is asked to.
type reader struct {
	*source.Supervisor
	listings chan chan error
	end      context.CancelFunc
	list     func() source.Listing
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
		one := &reader{listings: make(chan chan error), list: func() source.Listing { return r.listing(name) }}
		one.Supervisor = source.NewSupervisor(name, one, r.registry, source.Config{Hold: r.hold})
		ctx, end := context.WithCancel(r.ctx)
		one.end = end
		r.running.Go(func() { _ = one.Supervisor.Run(ctx) })
		r.of[name] = one
	}
	return r.of[name]
}

// listing is everything that the registry says of a source.
func (r *readers) listing(name string) (l source.Listing) {
	owned := map[model.Ref][]model.Record{}
	for rec := range r.registry.List(model.Filter{Source: name}) {
		owned[rec.Owner] = append(owned[rec.Owner], rec)
	}
	for _, rec := range owned[model.Ref{}] {
		if rec.Kind != model.KindSource {
			l.Objects = append(l.Objects, source.Object{Record: rec, Owned: owned[rec.Ref]})
		}
	}
	if r.unread.Load() {
		l.Rejected = []source.Rejection{{Ref: serviceRef(name, "refused.example"), Reason: "it cannot be read"}}
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
	_ = source.Remove(r.ctx, r.registry, source.SingleProcess{}, name)
}

// RemoveSource takes a source out of the configuration.
func (g *guarded) RemoveSource(name string) {
	g.remove(name)
	g.Writer.RemoveSource(name)
}

// judged starts who reads the sources of a registry, until the end of the test.
func judged(t *testing.T, r *registry, hold source.Hold) *readers {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	all := &readers{registry: r, hold: hold, ctx: ctx, of: map[string]*reader{}}
	t.Cleanup(func() { end(); all.running.Wait() })
	return all
}

// fresh starts a process that knows nothing from before. It has not seen
// any listing yet.
func fresh(t *testing.T, api *kubeapi.Server, r *registry, hold source.Hold, adapt func(*Config, *Options)) *guarded {
	t.Helper()
	g := &guarded{api: api, t: t, readers: judged(t, r, hold)}
	g.running = start(t, api, r, func(c *Config, o *Options) {
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
	j, ok := mark.Judgements.Of(g.baseline)
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
	if _, ok := mark.Judgements.Of(g.baseline); !ok {
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
func (g *guarded) holds(hosts ...string) (first Held) {
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
	brief = source.Hold{Share: 0.5, Min: 10, For: time.Millisecond}
	long  = source.Hold{Share: 0.5, Min: 10, For: time.Hour}
)

// list tells of one more complete listing, some time after the one before.
func (g *guarded) list() {
	<-time.After(2 * time.Millisecond)
	g.Listed("sc")
}

// A process that knows nothing from before meets a registry that has lost
// nearly everything: what is not listed stays, what comes is written at once,
// and the third equal listing is applied.
func TestNearlyEmptyFirstListingTakesNothingAway(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(append(fleet("sc", 0, 1, 3), fleet("sc", 90, 1, 1)...)...)
	r.listed("sc")
	var warnings bytes.Buffer // of a handler that locks; read when the writer has ended
	g := fresh(t, api, r, brief, func(_ *Config, o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	g.Listed("sc")
	g.lacks(38)
	wants(t, api, hostOf(0), "10.0.0.1 10.0.0.2 10.0.0.3")
	wants(t, api, hostOf(90), "10.0.90.1")
	h := g.holds(hosts(1, 19)...)
	if h.Endpoints != 2 || h.Since.IsZero() || !strings.Contains(h.Reason, "source sc since the start lacks 38 of the 40 endpoints") ||
		!strings.Contains(h.Reason, "isthmus sources release sc") {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
	g.list()
	g.lacks(38)
	g.holds(hosts(1, 19)...)
	g.deleted()
	g.list()
	g.lacks(0)
	g.holds()
	g.deleted(hosts(1, 19)...)
	g.stop()
	if text := warnings.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "source=sc") || !strings.Contains(text, "lacks 38 of the 40") {
		t.Errorf("the warnings:\n%s", text)
	}
}

func TestEqualListingsHaveToSpanTheTime(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	for range 6 {
		g.list()
		g.lacks(40)
	}
	g.holds(hosts(0, 20)...)
	g.deleted()
}

func TestWhatIsListedAgainIsNotHeld(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.Listed("sc")
	g.lacks(38)
	r.say(fleet("sc", 1, 18, 3)...)
	wants(t, api, hostOf(18), "10.0.18.1 10.0.18.2 10.0.18.3") // before the next listing
	g.holds(hostOf(19))                                        // few though they are
	g.list()
	g.lacks(2)
	r.say(fleet("sc", 19, 1, 2)...)
	g.list()
	g.lacks(0)
	g.holds()
	g.deleted()

	r.say(noService("sc", hostOf(19)), noInstance("sc", hostOf(19), "10.0.19.1"), noInstance("sc", hostOf(19), "10.0.19.2"))
	wants(t, api, hostOf(19), "no object")
}

// While something is missing, what has been listed since the start goes as the
// source's supervisor lets it.
func TestWhatWasListedSinceGoesAtOnce(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 2, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	g.lacks(36)
	g.holds(hosts(2, 18)...)
	r.say(noService("sc", hostOf(0)), noInstance("sc", hostOf(0), "10.0.0.1"), noInstance("sc", hostOf(0), "10.0.0.2"), noInstance("sc", hostOf(1), "10.0.1.2"))
	wants(t, api, hostOf(0), "no object")
	wants(t, api, hostOf(1), "10.0.1.1")
	g.holds(hosts(2, 18)...)
	g.deleted(hostOf(0))
}

func TestOperatorReleasesWhatFirstListingLacks(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	g.lacks(40)
	g.holds(hosts(0, 20)...)
	g.Released("sc")
	g.lacks(0)
	g.holds()
	g.deleted(hosts(0, 20)...)
}

func TestSmallLossIsAppliedAtOnce(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(append(fleet("sc", 0, 10, 2), fleet("sc", 50, 30, 2)...)...) // just half is there
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	for _, host := range hosts(10, 10) {
		wants(t, api, host, "no object")
	}
	g.holds()
}

// A service that had more than min endpoints, and lost them all, is held alone,
// be it there without endpoints or not at all; the other ones go.
func TestEmptiedServiceIsHeldAlone(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, slices.Concat(fleet("sc", 0, 20, 2), fleet("sc", 20, 2, 11), fleet("sc", 22, 1, 13))...)
	r.say(slices.Concat(fleet("sc", 0, 19, 2), fleet("sc", 21, 1, 0), fleet("sc", 22, 1, 1))...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.Listed("sc")
	g.lacks(22)
	if h := g.holds(hosts(20, 2)...); h.Endpoints != 11 || !strings.Contains(h.Reason, "all 11 endpoints of ServiceEntry shop/s20.example") {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
	g.deleted(hostOf(19))
	wants(t, api, hostOf(22), "10.0.22.1")         // it has lost more, but not everything
	r.say(instance("sc", hostOf(21), "10.0.21.1")) // one of the two is coming back
	g.list()
	g.lacks(21)
	g.list()
	g.lacks(10)
	wants(t, api, hostOf(20), "no object") // and is no business of the other
	g.holds(hostOf(21))
}

func TestListingsThatDifferConfirmNothing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.Listed("sc")
	g.lacks(40)
	for i := range 6 {
		r.say(fleet("sc", i, 1, 2)...)
		g.list()
		g.lacks(40 - 2*(i+1))
		if i%2 == 0 {
			g.list()
			g.lacks(40 - 2*(i+1))
		}
	}
	g.holds(hosts(6, 14)...)
	g.deleted()
}

// Of a listing in which something could not be read, nobody knows what is
// really gone.
func TestListingThatIsNotWholeConfirmsNothing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	for _, unread := range []bool{true, true, false, true, true, false, true} {
		g.unread.Store(unread)
		g.list()
		g.lacks(40)
	}
	g.holds(hosts(0, 20)...)
	g.deleted()
	r.say(fleet("sc", 0, 1, 2)...) // is back, and that is all that can be read
	g.list()
	g.lacks(38)
	g.unread.Store(false)
	for _, left := range []int{38, 38, 0} {
		g.list()
		g.lacks(left)
	}
	g.holds()
}

// What stays for no other reason than that something is rejected says so, and
// nothing about what the source loses from then on.
func TestWhatIsRejectedForLongMakesNothingElseSuspicious(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, brief, nil)
	g.unread.Store(true)
	for _, want := range []int{38, 38, 0, 0} {
		g.list()
		g.lacks(38)
		if got := g.suspected(); got != want {
			t.Errorf("%d endpoints are suspected, want %d", got, want)
		}
	}
	if h := g.holds(hosts(1, 19)...); !strings.Contains(h.Reason, "no listing confirms it from which something is rejected") {
		t.Errorf("it is held so: %s", h.Reason)
	}
	r.say(fleet("sc", 1, 1, 2)...)
	g.list()
	g.lacks(36)
	if got := g.suspected(); got != 36 {
		t.Errorf("%d endpoints are suspected as some are back, want 36", got)
	}
}

// Equal listings, too few of which span the time, are not helped by one that is
// not whole.
func TestListingThatIsNotWholeEndsNoSpan(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, source.Hold{Share: 0.5, Min: 10, For: 2 * time.Second}, nil)
	for range 3 {
		g.list()
		g.lacks(40)
	}
	<-time.After(2 * time.Second)
	g.unread.Store(true)
	g.list()
	g.lacks(40)
	g.unread.Store(false)
	g.list()
	g.lacks(0)
}

// Services without endpoints, and scopes, are no part of what makes a drop
// suspicious, but of what is held.
func TestWhatHasNoEndpointsIsHeldWithTheRest(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	scope := model.Upsert{Record: model.Record{
		Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "sc", Namespace: "shop", Name: "default"}},
		Spec: model.Scope{Hosts: model.ListOf("./*")},
	}}
	sidecars := func(c *Config, _ *Options) { c.Sidecars = true }
	before := newRegistry("sc")
	before.say(slices.Concat(fleet("sc", 0, 9, 2), fleet("sc", 9, 1, 0), []model.Event{scope})...)
	before.listed("sc")
	w := start(t, api, before, sidecars)
	sees(t, w, 11)
	w.stop()
	r.listed("sc")
	g := fresh(t, api, r, long, sidecars)
	g.Listed("sc")
	g.lacks(18)
	g.holds(append(hosts(0, 10), "default")...)
	g.Released("sc")
	g.holds()
	sees(t, g.running, 0)
}

// An instance that the registry lists is not missing, whatever becomes of it.
func TestWhatIsNotFitToBeWrittenIsNotMissing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 1, 30)...)
	r.say(service("sc", hostOf(0)))
	for e := range 30 {
		health := model.Unhealthy
		if e == 0 {
			health = model.Healthy
		}
		r.say(instanceOf("sc", hostOf(0), model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", e+1), Health: health}))
	}
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	wants(t, api, hostOf(0), "10.0.0.1")
	g.holds()
}

// Instances that share a machine are distinguished, and shards are one service.
func TestEndpointsAreDistinguishedByTheirPorts(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	crowd := func(n int) []model.Event {
		events := []model.Event{service("sc", hostOf(0))}
		for i := range n {
			ref := serviceRef("sc", hostOf(0))
			ref.Kind, ref.Name = model.KindEndpoint, fmt.Sprintf("%s/%d", hostOf(0), i)
			events = append(events, model.Upsert{Record: model.Record{Ref: ref, Owner: serviceRef("sc", hostOf(0)), Spec: model.Endpoint{
				Address: "10.0.0.1", Ports: model.MapOf(map[string]uint32{"http": uint32(8000 + 2*i), "grpc": uint32(8001 + 2*i)}),
			}}})
		}
		return events
	}
	written(t, api, []string{"sc"}, crowd(30)...)
	r.say(crowd(6)...)
	r.listed("sc")
	g := fresh(t, api, r, long, func(c *Config, _ *Options) { c.ShardSize = 10 })
	g.Listed("sc")
	g.lacks(24)
	if h := g.holds(hostOf(0)); h.Endpoints != 24 {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
}

// What was restored from disk is known to the source's supervisor, which holds
// by itself what it has to.
func TestRestoredSourceIsNotCompared(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	written(t, api, []string{"sc"}, fleet("sc", 0, 20, 2)...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, func(_ *Config, o *Options) { o.Restored = []string{"sc"} })
	g.Listed("sc")
	for _, host := range hosts(1, 19) {
		wants(t, api, host, "no object")
	}
	g.holds()
}

// At the first start ever there is nothing of ours: neither in an empty API
// server, nor in one with objects of others.
func TestFirstStartHoldsNothing(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	for i := range 30 {
		o := handedOver(fmt.Sprintf("other%02d.example", i))
		delete(o["metadata"].(kubeapi.Object), "labels") //nolint:forcetypeassert // it is one
		api.Put(entries+fmt.Sprintf("other%02d.example", i), o)
	}
	r.say(fleet("sc", 0, 3, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	for i := range 3 {
		wants(t, api, hostOf(i), fmt.Sprintf("10.0.%d.1 10.0.%d.2", i, i))
	}
	g.holds()
	g.deleted()
}

// Nobody knows which of its sources an endpoint of an object came from. So the
// object waits until all have been listed, and for any that has lost much.
func TestObjectsOfSeveralSourcesAreComparedOnceAllAreListed(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc", "files")
	both := fleet("sc", 0, 20, 2)
	for i := range 20 {
		both = append(both, instance("files", hostOf(i), fmt.Sprintf("10.1.%d.1", i)), service("files", hostOf(i)))
	}
	written(t, api, []string{"sc", "files"}, both...)
	r.say(fleet("sc", 0, 1, 2)...)
	r.listed("sc")
	g := fresh(t, api, r, long, nil)
	g.Listed("sc")
	g.holds(hosts(0, 20)...)
	if h := g.Status().Held[0]; !strings.Contains(h.Reason, "source files, which it is made of, has not been listed yet") {
		t.Errorf("%s is held: %d endpoints, %s", h.Name, h.Endpoints, h.Reason)
	}
	for i := range 20 {
		r.say(instance("files", hostOf(i), fmt.Sprintf("10.1.%d.1", i)), service("files", hostOf(i)))
	}
	r.listed("files")
	g.Listed("files")
	g.lacks(38)
	if h := g.holds(hosts(1, 19)...); !strings.Contains(h.Reason, "source files since the start lacks 38 of the 58 endpoints") {
		t.Errorf("it is held so: %s", h.Reason)
	}
	g.Released("files")
	await(t, "the other reason", func() error {
		if h := g.holds(hosts(1, 19)...); !strings.Contains(h.Reason, "source sc since the start lacks 38 of the 40 endpoints") {
			return fmt.Errorf("it is held so: %s", h.Reason)
		}
		return nil
	})
	g.deleted()
	g.Released("sc")
	wants(t, api, hostOf(1), "10.1.1.1")
	g.holds()
}

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
				gone = append(gone, noService("sc", hostOf(i)), noInstance("sc", hostOf(i), fmt.Sprintf("10.0.%d.1", i)), noInstance("sc", hostOf(i), fmt.Sprintf("10.0.%d.2", i)))
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
		"leave: it is as it should be": 1, "create: it is missing": 1,
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
		r.say(service("sc", "a.example"))
		r.say(drawMoves(rt, present)...)
		r.listed("sc")
		w := start(t, api, r, shards)
		rests(t, w, r, api)
		w.stop()

		before, always, ever := claimsOf(api.Everything()).all(), map[string]bool{}, map[string]bool{}
		look := func(first bool) {
			now := map[string]bool{}
			service, _ := r.snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
			for _, port := range service.Ports {
				for e := range service.Endpoints(port.Number).All() {
					now[e.Address], ever[e.Address] = true, true
					always[e.Address] = always[e.Address] || first
				}
			}
			for address := range always {
				always[address] = always[address] && now[address]
			}
		}
		r.say(drawMoves(rt, present)...)
		look(true)
		h := recorded(api)
		g := fresh(t, api, r, source.Hold{Share: 0, Min: 1, For: time.Hour}, shards)
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
				if !strings.Contains(address, " ") && (always[address] || !ever[address]) && !state.all()[address] {
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
