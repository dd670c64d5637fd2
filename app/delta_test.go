package app_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// onePath is the way of a change from a registry to the catalog, without the
// goroutines between: a sink, a store, and a builder that follows it.
type onePath struct {
	sink    source.Sink
	batches func() (model.Batch, error, bool)
	builder *catalog.Builder
}

type runFunc func(ctx context.Context, sink source.Sink) error

func (f runFunc) Run(ctx context.Context, sink source.Sink) error { return f(ctx, sink) }

// walkPath runs test with a path on which one service has so many endpoints.
func walkPath(tb testing.TB, endpoints int, test func(p *onePath)) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	memory := store.NewMemory(store.Config{})
	src := runFunc(func(ctx context.Context, sink source.Sink) error {
		defer cancel()
		o := model.Object{Record: model.Record{Ref: pathRef(model.KindService, "shop"), Spec: model.Service{
			Hosts: model.ListOf("shop.example"), Resolution: model.ResolutionStatic,
			Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		}}}
		for i := range endpoints {
			o.Owned = append(o.Owned, pathEndpoint(i, 0))
		}
		if err := sink.Replace(ctx, model.Listing{Objects: []model.Object{o}}); err != nil {
			return err
		}
		next, stop := iter.Pull2(memory.Watch(ctx, model.Filter{}))
		defer stop()
		p := &onePath{sink: sink, batches: next, builder: catalog.NewBuilder(nil)}
		for p.builder.Snapshot().Totals().Endpoints < endpoints {
			p.follow(tb)
		}
		test(p)
		return nil
	})
	if err := supervise.New("reg", src, memory, supervise.Config{}).Run(ctx); err != nil {
		tb.Fatal(err)
	}
}

func pathRef(kind model.Kind, name string) model.Ref {
	return model.Ref{Kind: kind, Key: model.Key{Namespace: "ns", Name: name}}
}

func pathEndpoint(i int, weight uint32) model.Record {
	address := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
	return model.Record{
		Ref: pathRef(model.KindEndpoint, "shop/"+address), Owner: pathRef(model.KindService, "shop"),
		Spec: model.Endpoint{Address: address, Weight: weight},
	}
}

// follow has the catalog take the next batch of the store.
func (p *onePath) follow(tb testing.TB) catalog.Change {
	tb.Helper()
	batch, err, ok := p.batches()
	if err != nil || !ok {
		tb.Fatalf("the watch ended: %v", err)
	}
	return p.builder.Apply(p.builder.Snapshot().Revision+1, batch.Events)
}

// change sends one change all the way, which is of one endpoint.
func (p *onePath) change(tb testing.TB, c model.Change) {
	tb.Helper()
	if err := p.sink.Change(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	shop := catalog.ServiceKey{Namespace: "ns", Host: "shop.example"}
	if change := p.follow(tb); len(change.Services[shop].Endpoints) != 1 {
		tb.Fatalf("%d endpoints changed", len(change.Services[shop].Endpoints))
	}
}

// cycle changes an endpoint, takes it away and brings it back.
func (p *onePath) cycle(tb testing.TB, i int) {
	tb.Helper()
	rec := pathEndpoint(i, 7)
	p.change(tb, model.Change{OwnedUpserts: []model.Record{rec}})
	p.change(tb, model.Change{OwnedDeletes: []model.Ref{rec.Ref}})
	p.change(tb, model.Change{OwnedUpserts: []model.Record{pathEndpoint(i, 0)}})
}

// What a change of one endpoint costs from the registry to the catalog does not
// grow with the service: a thousand times as many endpoints make trees deeper,
// and that is all.
func TestOneEndpointCostsTheSameInALargeService(t *testing.T) {
	cost := map[int]float64{}
	for _, endpoints := range []int{20, 20_000} {
		walkPath(t, endpoints, func(p *onePath) {
			i := 0
			cost[endpoints] = testing.AllocsPerRun(100, func() { p.cycle(t, i*7919%endpoints); i++ })
		})
	}
	t.Logf("three changes of one endpoint: %v allocations by endpoints of the service", cost)
	if small, large := cost[20], cost[20_000]; large > 2*small {
		t.Errorf("%v allocations with 20 endpoints, %v with 20,000", small, large)
	}
}

// BenchmarkOneEndpoint takes changes of single endpoints from the registry to the catalog.
func BenchmarkOneEndpoint(b *testing.B) {
	for _, endpoints := range []int{20, 20_000} {
		b.Run(fmt.Sprint(endpoints), func(b *testing.B) {
			walkPath(b, endpoints, func(p *onePath) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					p.change(b, model.Change{OwnedUpserts: []model.Record{pathEndpoint(i*7919%endpoints, uint32(i/endpoints+1))}})
				}
			})
		})
	}
}
