package scale_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// BenchmarkHeld measures what an Envoy holds of many services: of all, and of those that
// a Sidecar names; with clusters and endpoints alone, and with listeners and routes as
// well; behind Isthmus and behind istiod, in one run and with the same objects.
func BenchmarkHeld(b *testing.B) {
	for _, row := range measureHeld(b, sizeOfFlags(), inScope) {
		b.Run(row.name, row.report)
	}
}

// inScope is how many services a Sidecar names.
const inScope = 50

// holding is what an Envoy holds in one of the ways.
type holding struct {
	name string
	figures
}

func measureHeld(tb testing.TB, s size, few int) (rows []holding) {
	tb.Helper()
	c := startCluster(tb)
	both := planes(tb, c)
	var entries []*unstructured.Unstructured
	port := freePort(tb)
	for n := range s.services {
		entries = append(entries, entry(n, port, 1, s.instances/s.services))
	}
	writeAll(tb, both, cluster.ServiceEntries, entries)
	writeAll(tb, both, cluster.Sidecars, []*unstructured.Unstructured{scopeOf(scoped, few)})
	for _, p := range both {
		for _, clustersOnly := range []bool{true, false} {
			for in, want := range map[string]int{namespace: s.services, scoped: few} {
				name := fmt.Sprintf("%s/clustersOnly=%t/services=%d", p.Name(), clustersOnly, want)
				var all []figures
				for range s.rounds {
					f := hold(tb, c, p, cluster.Sidecar{Workload: "client", Namespace: in, Delta: true, ClustersOnly: clustersOnly}, want)
					fmt.Fprintln(os.Stderr, name, f) // for what follows takes long
					all = append(all, f)
				}
				rows = append(rows, holding{name, medianOf(all)})
			}
		}
	}
	return rows
}

// hold has an Envoy take what it may see, and measures it.
func hold(tb testing.TB, c *cluster.Cluster, p plane, s cluster.Sidecar, want int) figures {
	tb.Helper()
	const gauges = "^cluster_manager.(active|warming)_clusters$|^server.memory_allocated$|^listener_manager.total_listeners_active$"
	before, _ := p.CPU(tb)
	began := time.Now()
	envoy, err := c.StartEnvoyOf(tb.Context(), p.XDS(), s)
	if err != nil {
		tb.Fatal(err)
	}
	defer envoy.Stop()
	var stats map[string]uint64
	until.NoError(tb, 100*time.Millisecond, "all services in Envoy", func() (err error) {
		stats, err = envoy.Stats(tb.Context(), gauges)
		if active, warming := stats["cluster_manager.active_clusters"], stats["cluster_manager.warming_clusters"]; err == nil &&
			(int(active) < want || warming > 0) {
			err = fmt.Errorf("%d clusters are active, %d are warming", active, warming)
		}
		return err
	})
	after, _ := p.CPU(tb)
	f := figures{
		"ready-s": time.Since(began).Seconds(), "envoy-cpu-s": probe.CPU(tb, envoy.ID()).Seconds(),
		"envoy-rss-MB": probe.Memory(tb, envoy.ID(), "VmRSS") / 1e6, "envoy-allocated-MB": float64(stats["server.memory_allocated"]) / 1e6,
		"clusters": float64(stats["cluster_manager.active_clusters"]), "listeners": float64(stats["listener_manager.total_listeners_active"]),
		"cpu-ms": (after - before).Seconds() * 1000,
	}
	if err := envoy.Rejected(tb.Context()); err != nil { // which needs memory of its own
		tb.Error(err)
	}
	return f
}
