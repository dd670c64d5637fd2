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

// scopings are the ways in which a proxy sees less than everything.
var scopings = []struct {
	name     string
	mesh     string // configuration
	sidecars bool   // that Isthmus writes
}{
	{name: "unscoped"},
	// Objects without exportTo, and all are, are exported to where they are: each
	// app has a namespace of its own.
	{name: "exportTo", mesh: "defaultServiceExportTo: ['.']\n"},
	{name: "sidecars", sidecars: true},
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

// measureScopes writes a registry once, and looks at it in each of the ways.
func measureScopes(tb testing.TB, s size) map[string]figures {
	tb.Helper()
	r, c := evenRegistry(tb, s), startCluster(tb)
	nameApps(tb, c)
	settings := defaults()
	settings.namespace = "{{.App}}"
	p := serve(tb, c, r, settings)
	created := p.mirrored(tb, s.services)
	rows := map[string]figures{}
	for _, scoping := range scopings {
		if !slices.Contains(strings.Split(*scopes, ","), scoping.name) {
			continue
		}
		objects := s.services
		if scoping.sidecars {
			p.stop(tb)
			r.use(tb, s)
			settings.sidecars = true
			settings.source = `, dependencies: {poll: 5s}, scopes: {namespace: "{{.App}}", workloadSelector: {app: "{{.Service}}"}}`
			p = serve(tb, c, r, settings)
			objects += s.consumers
		}
		p.mirrored(tb, objects)
		rows[scoping.name] = measureScope(tb, s, r, c, p, scoping.mesh)
		rows[scoping.name]["create-s"] = created.Seconds()
		fmt.Fprintln(os.Stderr, scoping.name, rows[scoping.name]) // for what follows takes long
	}
	return rows
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
func measureScope(tb testing.TB, s size, r *registry, c *cluster.Cluster, p *server, config string) figures {
	tb.Helper()
	m := startMesh(tb, c, config, cluster.Sidecar{Workload: "client", Namespace: app(0), Labels: map[string]string{"app": name(0)}})
	defer m.stop()
	f, before := m.load(tb), m.istiod.Pushes(tb)
	m.mustHaveRejectedNothing(tb)
	used, began := m.costs(tb), time.Now()
	const metric = "isthmus_istio_writes_total"
	written, made := p.metrics(tb).Sum(metric), 0
	settle := func() {
		p.await(tb, "write of each change", func(m probe.Metrics) bool { return m.Sum(metric) >= written+float64(made) })
	}
	exercise(r, s, func(n int) int { return (1 + n*7919) % s.services }, func(*change) { made++ }, settle)
	settle()
	seen := m.follow(tb, r.rest, 2) // of what the proxy sees in any case
	exercise(r, size{changes: 2, pace: s.pace}, func(int) int { return provider(0, 1) }, seen.expect, seen.open.Wait)
	f["envoy-ms"] = seen.end().ms(0.5)
	after, count := m.costs(tb), float64(s.changes+2)
	f.push("change-", m.istiod.Pushes(tb).Since(before))
	f["istiod-ms/change"] = 1000 * (after["istiod-cpu-s"] - used["istiod-cpu-s"]) / count
	f["changes/s"] = count / time.Since(began).Seconds()
	return f
}

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
