package scale_test

import (
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// BenchmarkEnvoy makes changes at a pace, and measures how long each takes to be
// in an object, and in an Envoy behind istiod.
func BenchmarkEnvoy(b *testing.B) {
	measurePace(b, sizeOfFlags()).report(b)
}

func measurePace(tb testing.TB, s size) figures {
	tb.Helper()
	r, c := evenRegistry(tb, s), startCluster(tb)
	p := serve(tb, c, r, defaults())
	created := p.mirrored(tb, s.services, s.services)
	m := startMesh(tb, c, "", cluster.Sidecar{Workload: "client", Namespace: namespace})
	objects := watchObjects(tb, c)

	before, pushes := m.costs(tb), m.istiod.Pushes(tb)
	own, api, began := cpu(tb, p.Process), cpu(tb, c.API.Process), time.Now()
	f, all := m.follow(tb, r.rest, s.changes), []*change(nil)
	settle := func() { objects.awaitAll(tb); f.open.Wait() }
	making := exercise(r, s, func(n int) int { return n % s.services }, func(c *change) {
		all = append(all, c)
		objects.expect(c)
		f.expect(c)
	}, settle)
	settle()
	inEnvoy, written, seconds := f.end(), sample(nil), time.Since(began).Seconds()
	for _, c := range all {
		written = append(written, c.took)
	}
	events, _ := objects.counts()
	after := m.costs(tb)
	m.mustHaveRejectedNothing(tb)
	result := figures{
		"create-s":   created.Seconds(),
		"written-ms": written.ms(0.5), "written-p99-ms": written.ms(0.99),
		"envoy-ms": inEnvoy.ms(0.5), "envoy-p99-ms": inEnvoy.ms(0.99),
		"changes/s": float64(len(all)) / making.Seconds(), "writes/s": float64(events) / making.Seconds(),
		"writes/change":   float64(events) / float64(len(all)),
		"own-cpu-%":       100 * (cpu(tb, p.Process) - own).Seconds() / seconds,
		"apiserver-cpu-%": 100 * (cpu(tb, c.API.Process) - api).Seconds() / seconds,
		"istiod-cpu-%":    100 * (after["istiod-cpu-s"] - before["istiod-cpu-s"]) / seconds,
		"envoy-rss-MB":    before["envoy-rss-MB"], "clusters": after["clusters"], "connections": after["connections"],
	}
	result.push("", m.istiod.Pushes(tb).Since(pushes))
	return result
}
