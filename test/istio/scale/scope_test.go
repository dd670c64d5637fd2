package scale_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// scoping is a way in which a proxy sees less than everything.
type scoping struct {
	name     string
	source   string // more of the source's settings
	sidecars bool   // that Isthmus writes
}

// scopings are in the order in which they are measured. What the last one says is
// written into each object, so those before it need not be written twice.
var scopings = []scoping{
	{name: "unscoped"},
	{name: "sidecars", sidecars: true, source: `, dependencies: {poll: 30s}, scopes: {namespace: "{{.App}}", workloadSelector: {app: "{{.Service}}"}}`},
	// Each app has a namespace of its own.
	{name: "exportTo", source: `, exportTo: ["."]`},
}

// BenchmarkScope measures what an Envoy holds of a large registry, and what a
// change costs istiod, by what the Envoy may see.
func BenchmarkScope(b *testing.B) {
	rows := measureScopes(b, sizeOfFlags())
	for _, s := range scopings {
		if row := rows[s.name]; row != nil {
			b.Run(s.name, row.report)
		}
	}
}

// measureScopes fills a registry once, and looks at it in each of the ways. Each
// round of a way has an istiod and an Envoy of its own; medians are returned.
func measureScopes(tb testing.TB, s size) map[string]figures {
	tb.Helper()
	r, c := evenRegistry(tb, s), startCluster(tb)
	nameApps(tb, c)
	r.use(tb, s)
	rows := map[string]figures{}
	for _, way := range scopings {
		if !slices.Contains(strings.Split(*scopes, ","), way.name) {
			continue
		}
		p := scope(tb, s, r, c, way)
		var all []figures
		for range s.rounds {
			f := measureScope(tb, s, r, c, p)
			all = append(all, f)
			fmt.Fprintln(os.Stderr, way.name, f) // for what follows takes long
		}
		rows[way.name] = medianOf(all)
		p.stop(tb)
	}
	return rows
}

// scope has the registry written in one of the ways, whatever was written before.
func scope(tb testing.TB, s size, r *registry, c *cluster.Cluster, way scoping) *server {
	tb.Helper()
	settings := defaults()
	settings.namespace, settings.source, settings.sidecars = "{{.App}}", way.source, way.sidecars
	p := serve(tb, c, r, settings)
	objects, writes := s.services, s.services
	if way.sidecars {
		objects, writes = s.services+s.consumers, s.consumers
	}
	took := p.mirrored(tb, objects, writes)
	fmt.Fprintf(os.Stderr, "%s: written after %.0f s, %.0f s of CPU of the API server so far, load %.1f\n",
		way.name, took.Seconds(), cpu(tb, c.API.Process).Seconds(), load())
	return p
}

// nameApps makes the namespaces of the apps.
func nameApps(tb testing.TB, c *cluster.Cluster) {
	tb.Helper()
	client, err := c.API.Client()
	if err != nil {
		tb.Fatal(err)
	}
	defer client.Close()
	for n := range apps {
		if err := client.Namespace(tb.Context(), app(n)); err != nil {
			tb.Fatal(err)
		}
	}
}

// measureScope looks at what the proxy of the first service sees.
func measureScope(tb testing.TB, s size, r *registry, c *cluster.Cluster, p *server) figures {
	tb.Helper()
	m := startMesh(tb, c, "", cluster.Sidecar{Workload: "client", Namespace: app(0), Labels: map[string]string{"app": name(0)}})
	defer m.stop()
	f, before := m.load(tb), m.istiod.Pushes(tb)
	m.mustHaveRejectedNothing(tb)
	used, began := m.costs(tb), time.Now()
	const metric = "isthmus_istio_writes_total"
	written, made := p.metrics(tb).Sum(metric), 0
	settle := func() {
		p.await(tb, "write of each change", func(m probe.Metrics) bool { return m.Sum(metric) >= written+float64(made) })
	}
	exercise(r, s, func(n int) int { return elsewhere(n) % s.services }, func(*change) { made++ }, settle)
	settle()
	seen := m.follow(tb, r.rest, 2) // of what the proxy sees in any case
	exercise(r, size{changes: 2, pace: s.pace}, func(int) int { return provider(0, 1) }, seen.expect, seen.open.Wait)
	f["envoy-ms"] = seen.end().ms(0.5)
	after, count := m.costs(tb), float64(s.changes+2)
	f.push("change-", m.istiod.Pushes(tb).Since(before))
	f["connections"] = after["connections"] // each brings everything
	f["istiod-ms/change"] = 1000 * (after["istiod-cpu-s"] - used["istiod-cpu-s"]) / count
	f["changes/s"] = count / time.Since(began).Seconds()
	return f
}

// elsewhere is a service that no scope shows to the proxy: of another app than that
// of the first service, as long as there are services by tens.
func elsewhere(n int) int { return 1 + n*790 }

// provider is the kth service that the nth uses: of its app and environment.
func provider(n, k int) int { return n + k*apps*environments }

// use has the first services look up others, as clients of the registry do.
func (r *registry) use(tb testing.TB, s size) {
	tb.Helper()
	for n := range s.consumers {
		for k := range s.uses {
			r.find(tb, n, provider(n, k+1)%s.services)
		}
	}
}

func (r *registry) find(tb testing.TB, consumer, provider int) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet,
		r.URL()+"/v4/default/registry/instances?appId="+app(provider)+"&serviceName="+name(provider)+"&version=0%2B", http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("X-ConsumerId", r.live[consumer])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		tb.Fatalf("%s looks up %s: %s", name(consumer), name(provider), answer.Status)
	}
}
