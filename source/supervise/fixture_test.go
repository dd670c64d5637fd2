package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// registry is a source that does what a test tells it.
type registry struct {
	calls chan func(context.Context, source.Sink) error // an error ends the run
	mu    sync.Mutex
	runs  []time.Time
	asks  []time.Time // when it was asked to list again
	full  *model.Listing
}

// answer has the registry list this whenever it is asked to list again.
func (r *registry) answer(l model.Listing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = &l
}

// asked returns when it was asked to list again, counted from a time.
func (r *registry) asked(from time.Time) (after []time.Duration) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.asks {
		after = append(after, at.Sub(from))
	}
	return after
}

func (r *registry) relist(ctx context.Context, sink source.Sink) error {
	r.mu.Lock()
	r.asks = append(r.asks, time.Now())
	full := r.full
	r.mu.Unlock()
	if full == nil {
		return nil
	}
	return sink.Replace(ctx, *full)
}

// began returns when each run began.
func (r *registry) began() []time.Time {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs)
}

func (r *registry) Run(ctx context.Context, sink source.Sink) error {
	r.mu.Lock()
	r.runs = append(r.runs, time.Now())
	r.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sink.Relist():
			if err := r.relist(ctx, sink); err != nil {
				return err
			}
		case call := <-r.calls:
			if err := call(ctx, sink); err != nil {
				return err
			}
		}
	}
}

// bridge is a supervisor at work between a registry and a store.
type bridge struct {
	*supervise.Supervisor
	t        *testing.T
	registry *registry
	store    *ledger
}

// supervise runs test in a bubble of fake time, with a supervisor that is
// running and has read nothing.
func supervised(t *testing.T, test func(*bridge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(connect(t, newLedger())) })
}

func connect(t *testing.T, l *ledger) *bridge {
	t.Helper()
	return connectWith(t, l, supervise.Config{})
}

func connectWith(t *testing.T, l *ledger, cfg supervise.Config) *bridge {
	t.Helper()
	cfg.Kind, cfg.Restored = "fake", l.saved
	r := &registry{calls: make(chan func(context.Context, source.Sink) error)}
	s := supervise.New("reg", r, l, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the supervisor ended with %v", err)
		}
		if len(l.noops) > 0 {
			t.Errorf("writes that change nothing: %v", l.noops)
		}
	})
	synctest.Wait()
	return &bridge{s, t, r, l}
}

// do has the source make one call, and returns what the call returned.
func (b *bridge) do(call func(context.Context, source.Sink) error) (result error) {
	b.t.Helper()
	b.registry.calls <- func(ctx context.Context, sink source.Sink) error {
		result = call(ctx, sink)
		return nil
	}
	synctest.Wait()
	return result
}

func (b *bridge) replace(l model.Listing) {
	b.t.Helper()
	if err := b.do(func(ctx context.Context, sink source.Sink) error { return sink.Replace(ctx, l) }); err != nil {
		b.t.Fatalf("replace: %v", err)
	}
}

func (b *bridge) list(objects ...model.Object) {
	b.t.Helper()
	b.replace(model.Listing{Objects: objects})
}

func (b *bridge) change(c model.Change) {
	b.t.Helper()
	if err := b.do(func(ctx context.Context, sink source.Sink) error { return sink.Change(ctx, c) }); err != nil {
		b.t.Fatalf("change: %v", err)
	}
}

// fail ends the run of the source with an error.
func (b *bridge) fail(reason string) {
	b.registry.calls <- func(context.Context, source.Sink) error { return errors.New(reason) }
	synctest.Wait()
}

// panics ends the run of the source with a panic.
func (b *bridge) panics(value string) {
	b.registry.calls <- func(context.Context, source.Sink) error { panic(value) }
	synctest.Wait()
}

// holds checks everything the store holds but the mark, one line per record.
func (b *bridge) holds(want ...string) {
	b.t.Helper()
	var got []string
	for rec := range b.store.List(model.Filter{Source: "reg"}) {
		if !rec.Kind.Reserved() {
			got = append(got, line(rec))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("the store (-want +got):\n%s", diff)
	}
}

// heldIn returns what a store says is held.
func heldIn(s supervise.Lister) (holds model.Holds) {
	for rec := range s.List(model.Filter{Kind: model.KindHold}) {
		holds.Add(rec)
	}
	return holds
}

// heldFor returns what a record is held for.
func (b *bridge) heldFor(kind model.Kind, name string) (model.Hold, bool) {
	rec, _ := b.store.memory.Get(stored(kind, name))
	return heldIn(b.store).Of(rec.Ref, rec.Owner)
}

// wrote checks the last commit.
func (b *bridge) wrote(want ...string) {
	b.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, b.store.last()); diff != "" {
		b.t.Errorf("the last commit (-want +got):\n%s", diff)
	}
}

func (b *bridge) inState(want source.State) {
	b.t.Helper()
	if st := b.Status(); st.State != want {
		b.t.Errorf("state is %s (%s), want %s", st.State, st.Reason, want)
	}
}

func title(ref model.Ref) string {
	name, _, _ := strings.Cut(ref.Name, "@") // of a hold, when it began
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, name)
}

func line(rec model.Record) string {
	text := title(rec.Ref)
	if rec.Place != "" {
		text += " in " + rec.Place
	}
	if rec.Status.Stale != "" {
		text += " stale: " + rec.Status.Stale
	}
	return text
}

func ref(kind model.Kind, name string) model.Ref {
	return model.Ref{Kind: kind, Key: model.Key{Namespace: "ns", Name: name}}
}

// stored returns the reference the store knows it by.
func stored(kind model.Kind, name string) model.Ref {
	r := ref(kind, name)
	r.Source = "reg"
	return r
}

// service returns the object of a service with one endpoint per address.
func service(name, place string, addresses ...string) model.Object {
	o := model.Object{Record: model.Record{
		Ref: ref(model.KindService, name), Place: place,
		Spec: model.Service{Hosts: model.ListOf(name + ".example.com")},
	}}
	for _, address := range addresses {
		o.Owned = append(o.Owned, model.Record{
			Ref:  ref(model.KindEndpoint, name+"/"+address),
			Spec: model.Endpoint{Address: address},
		})
	}
	return o
}

// crowd returns n addresses.
func crowd(n int) []string {
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	}
	return addresses
}

func workload(name, place string) model.Object {
	return model.Object{Record: model.Record{
		Ref: ref(model.KindWorkload, name), Place: place,
		Spec: model.Workload{Endpoint: model.Endpoint{Address: "10.1.1.1"}},
	}}
}

// weighed returns o with another weight on the endpoint at i.
func weighed(o model.Object, i int, weight uint32) model.Object {
	o.Owned = slices.Clone(o.Owned)
	spec, _ := o.Owned[i].Spec.(model.Endpoint)
	spec.Weight = weight
	o.Owned[i].Spec = spec
	return o
}

func mentions(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not mention %q", text, word)
		}
	}
}
