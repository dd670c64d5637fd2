package catalog_test

import (
	"fmt"
	"math"
	"runtime"
	"sort"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// What the largest installation known to us holds.
const (
	manyServices  = 28_000
	manyEndpoints = 470_000
)

// weighs returns the event that an endpoint of a service has another weight.
func weighs(service, i, weight int) model.Event {
	return model.Upsert{Record: endpoint("a", fmt.Sprintf("s%d/%d", service, i), fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), uint32(weight))}
}

// grown returns a builder that holds services of so many endpoints each.
func grown(sizes ...int) *catalog.Builder {
	b := catalog.NewBuilder(order)
	b.Apply(1, listing(sizes...))
	return b
}

func listing(sizes ...int) []model.Event {
	var events []model.Event
	for s, size := range sizes {
		events = append(events, model.Upsert{Record: service("a", fmt.Sprintf("s%d", s), fmt.Sprintf("s%d.example", s))})
		for i := range size {
			events = append(events, weighs(s, i, 0))
		}
	}
	return events
}

// tail returns the sizes of that many services which together have that many
// endpoints: a few have very many of them, and most have few.
func tail(services, endpoints int) []int {
	sizes := func(largest int) (list []int, sum int) {
		for i := range services {
			list = append(list, max(1, int(float64(largest)/math.Pow(float64(i+1), 0.8))))
			sum += list[i]
		}
		return list, sum
	}
	largest := sort.Search(endpoints, func(n int) bool {
		_, sum := sizes(n)
		return sum >= endpoints
	})
	list, _ := sizes(largest)
	return list
}

// changeOne measures one endpoint's change at a time, in services drawn evenly
// from the endpoints.
func changeOne(b *testing.B, builder *catalog.Builder, sizes []int) {
	b.Helper()
	var of []int // the service of each endpoint
	for s, size := range sizes {
		for range size {
			of = append(of, s)
		}
	}
	b.ReportAllocs()
	n := 1
	for b.Loop() {
		n++
		s := of[n*7919%len(of)]
		change := builder.Apply(uint64(n), []model.Event{weighs(s, n*104729%sizes[s], n)})
		if len(change.Services) != 1 {
			b.Fatalf("%d services changed", len(change.Services))
		}
	}
}

func BenchmarkOneEndpointOfAServiceOf20000(b *testing.B) {
	changeOne(b, grown(20_000), []int{20_000})
}

// One endpoint of 20,000 becomes heavier and lighter, in a service with shares and in one
// without.
func BenchmarkOneEndpointBehindShares(b *testing.B) {
	key := catalog.ServiceKey{Namespace: "ns", Host: "s0.example"}
	shares := &split.Split{Backends: []model.Backend{{Source: "a", Weight: 90}, {Source: "b", Weight: 10}}}
	for name, splits := range map[string]map[catalog.ServiceKey]*split.Split{"without": nil, "with": {key: shares}} {
		b.Run(name, func(b *testing.B) {
			builder := catalog.NewBuilderIn(catalog.Order{Sources: order, Splits: splits})
			builder.Apply(1, append(listing(20_000), upserts(service("b", "s0", "s0.example"), endpoint("b", "s0/0", "10.250.0.1", 1))...))
			builder.Apply(2, []model.Event{weighs(0, 1, 3)})
			b.ReportAllocs()
			n := uint64(2)
			for b.Loop() {
				n++
				if change := builder.Apply(n, []model.Event{weighs(0, 7919, 2+int(n%2))}); len(change.Services) != 1 {
					b.Fatalf("%d services changed", len(change.Services))
				}
			}
		})
	}
}

func BenchmarkOneEndpointOf470000(b *testing.B) {
	sizes := tail(manyServices, manyEndpoints)
	changeOne(b, grown(sizes...), sizes)
}

// A workload among 5,000 moves from one of 5,000 services that select by label
// in one namespace to another.
func BenchmarkWorkloadMovesAmong5000Selectors(b *testing.B) {
	for _, test := range []struct{ name, common string }{
		{"alone", ""},           // each service selects by a value of its own
		{"commonLater", "team"}, // and by a value they all share
		{"commonFirst", "all"},  // whose name comes first
	} {
		b.Run(test.name, func(b *testing.B) {
			const n = 5000
			labelled := func(i int) model.Labels {
				if test.common == "" {
					return labels("app", fmt.Sprint(i))
				}
				return labels("app", fmt.Sprint(i), test.common, "x")
			}
			workload := func(i, app int) model.Event {
				return model.Upsert{Record: model.Record{Ref: ref(model.KindWorkload, "b", fmt.Sprintf("w%d", i)), Spec: model.Workload{
					Endpoint: model.Endpoint{Address: fmt.Sprintf("10.1.%d.%d", i>>8, i&255), Labels: labelled(app)},
				}}}
			}
			var events []model.Event
			for i := range n {
				r := service("a", fmt.Sprintf("s%d", i), fmt.Sprintf("s%d.example", i))
				spec := r.Spec.(model.Service)
				spec.WorkloadSelector = labelled(i)
				r.Spec = spec
				events = append(events, model.Upsert{Record: r}, workload(i, i))
			}
			builder := catalog.NewBuilder(order)
			builder.Apply(1, events)
			b.ReportAllocs()
			app := 0
			for b.Loop() {
				app++
				if change := builder.Apply(2, []model.Event{workload(7, app%n)}); len(change.Services) != 2 && app%n != 8 {
					b.Fatalf("move %d changed %d services", app, len(change.Services))
				}
			}
		})
	}
}

// The first snapshot of a large store, applied as one.
func BenchmarkInitialApply(b *testing.B) {
	events := listing(tail(manyServices, manyEndpoints)...)
	for _, shape := range []string{"one", "batches"} {
		b.Run(shape, func(b *testing.B) {
			var builder *catalog.Builder
			b.ReportAllocs()
			for b.Loop() {
				builder = catalog.NewBuilder(order)
				size := len(events)
				if shape == "batches" {
					size = 1000 // as a store sends them
				}
				for at := 0; at < len(events); at += size {
					builder.Apply(1, events[at:min(at+size, len(events))])
				}
			}
			endpoints := builder.Snapshot().Totals().Endpoints
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(endpoints), "ns/endpoint")
			held := live()
			runtime.KeepAlive(builder)
			builder = nil
			b.ReportMetric(float64(held-live())/float64(endpoints), "held-B/endpoint")
		})
	}
	runtime.KeepAlive(events)
}

// Of a large source that turns stale and live again, another source has none or all endpoints, one in a thousand
// with another health.
func BenchmarkSourceTurnsStale(b *testing.B) {
	sizes := tail(manyServices, 500_000)
	events := listing(sizes...)
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprintf("shared=%t", shared), func(b *testing.B) {
			builder, differ := catalog.NewBuilder([]string{"a", "b"}), 0
			builder.Apply(1, events)
			if shared {
				twins := make([]model.Event, len(events))
				for i, event := range events {
					r := event.(model.Upsert).Record
					if r.Source = "b"; r.Owner != (model.Ref{}) {
						r.Owner.Source = "b"
					}
					if spec, is := r.Spec.(model.Endpoint); is && i%1000 == 0 {
						spec.Health, differ = model.Unhealthy, differ+1
						r.Spec = spec
					}
					twins[i] = model.Upsert{Record: r}
				}
				builder.Apply(2, twins)
			}
			turn := mark("a")
			b.ReportAllocs()
			for b.Loop() {
				for _, since := range []time.Time{time.Unix(1e9, 0), {}} {
					turn.Spec = model.SourceMark{StaleSince: since}
					n := 0
					for _, c := range builder.Apply(3, upserts(turn)).Services {
						n += len(c.Endpoints)
					}
					if n != differ {
						b.Fatalf("%d endpoints changed, want the %d of another health", n, differ)
					}
				}
			}
		})
	}
	runtime.KeepAlive(events)
}

// live is how many bytes are in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A carried object changes among few and among many.
func BenchmarkOneCarriedObject(b *testing.B) {
	record := func(i, n int) model.Record {
		return model.Record{Ref: ref("Novelty", "a", fmt.Sprintf("n%d", i)), Spec: model.Opaque{Content: fmt.Sprint(n)}}
	}
	for _, size := range []int{100, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			builder, events := catalog.NewBuilder(order), []model.Event{}
			for i := range size {
				events = append(events, model.Upsert{Record: record(i, 0)})
			}
			builder.Apply(1, events)
			b.ReportAllocs()
			n := 1
			for b.Loop() {
				n++
				change := builder.Apply(uint64(n), []model.Event{model.Upsert{Record: record(n*7919%size, n)}})
				if len(change.Opaques) != 1 {
					b.Fatalf("%d changed", len(change.Opaques))
				}
			}
		})
	}
}
