package envoy

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// seenFromAll encodes the routes of port 80 for some namespaces.
func seenFromAll(tb testing.TB, s *catalog.Snapshot, namespaces int) []world.Encoded {
	tb.Helper()
	w := NewWorld(s, true, "root")
	all := make([]world.Encoded, 0, namespaces)
	for i := range namespaces {
		subject, ok := w.Find(w.View(RouteType, sidecarIn(fmt.Sprintf("ns-%d", i))), RouteType, "80")
		if !ok {
			tb.Fatal("there are no routes")
		}
		all = append(all, subject.Encode())
	}
	return all
}

// heap is what is in use. What other tests left in pools or to finalizers goes only with
// a later collection.
func heap() uint64 {
	for range 4 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// The routes of 500 namespaces, each of which knows its own services by their bare
// names, take at most twice the memory of those of one.
func TestManyNamespacesShareTheirRoutes(t *testing.T) {
	one, all, bytes := memoryOfRoutes(t, 10_000, 500)
	t.Logf("10,000 services: %.1f MB with one namespace, %.1f MB with 500, whose routes have %.1f GB", mega(one), mega(all), mega(bytes)/1000)
	if all > 2*one {
		t.Errorf("%.1f MB with one namespace, and %.1f MB with 500", mega(one), mega(all))
	}
}

func mega(n uint64) float64 { return float64(n) / 1e6 }

// memoryOfRoutes is what a catalog takes with the routes of one namespace and of many,
// and how long the latter are together.
func memoryOfRoutes(tb testing.TB, services, namespaces int) (one, all, bytes uint64) {
	tb.Helper()
	empty := heap()
	builder := catalog.NewBuilder([]string{"s"})
	builder.Apply(1, kubernetesServices(services, namespaces))
	snapshot := builder.Snapshot()
	first := seenFromAll(tb, snapshot, 1)
	one = heap() - empty
	runtime.KeepAlive(first)
	every := seenFromAll(tb, snapshot, namespaces)
	all = heap() - empty
	for _, e := range every {
		bytes += uint64(e.Size()) //nolint:gosec // it is not negative
	}
	runtime.KeepAlive(every)
	runtime.KeepAlive(builder)
	return one, all, bytes
}

// BenchmarkRoutes measures what one service more costs on a port that many share.
func BenchmarkRoutes(b *testing.B) {
	for _, services := range []int{1_000, 10_000, 28_000} {
		for _, namespaces := range []int{1, 500} {
			b.Run(fmt.Sprintf("%d-services/%d-namespaces", services, namespaces), func(b *testing.B) {
				builder := catalog.NewBuilder([]string{"s"})
				builder.Apply(1, kubernetesServices(services, 500))
				all := seenFromAll(b, builder.Snapshot(), namespaces)
				b.ReportAllocs()
				revision := uint64(1)
				for b.Loop() {
					revision++
					if event := kubernetesService(services, 500); revision%2 == 0 {
						builder.Apply(revision, []model.Event{event})
					} else {
						builder.Apply(revision, []model.Event{model.Delete{Record: event.(model.Upsert).Record}}) //nolint:forcetypeassert // it is one
					}
					all = seenFromAll(b, builder.Snapshot(), namespaces)
				}
				b.ReportMetric(float64(all[0].Size()), "bytes/namespace")
			})
		}
	}
}

// BenchmarkRoutesMadeDirectly measures the same without fragments, for one namespace.
func BenchmarkRoutesMadeDirectly(b *testing.B) {
	for _, services := range []int{1_000, 10_000, 28_000} {
		b.Run(fmt.Sprintf("%d-services", services), func(b *testing.B) {
			builder := catalog.NewBuilder([]string{"s"})
			builder.Apply(1, kubernetesServices(services, 500))
			v := of(NewWorld(builder.Snapshot(), true, "root").View(RouteType, sidecarIn("ns-0")))
			b.ReportAllocs()
			for b.Loop() {
				encode("80", wire.RouteURL, plainRoutes(builder.Snapshot(), v, 80))
			}
		})
	}
}
