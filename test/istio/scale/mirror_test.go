package scale_test

import (
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// BenchmarkMirror mirrors a large registry: first by polling, and then, after a
// restart, with a watch.
func BenchmarkMirror(b *testing.B) {
	m := &measurement{registry: newRegistry(b, *services, *instances), cluster: startCluster(b)}
	m.server = serve(b, m.cluster, m.registry, defaults())
	if !b.Run("start", m.start) {
		return
	}
	b.Run("memory", m.memory)
	b.Run("idle", m.idle)
	b.Run("change", m.change)
	m.server.stop(b)

	watched := defaults()
	watched.watch = true
	m.server = serve(b, m.cluster, m.registry, watched)
	b.Run("restart", m.start)
	b.Run("watched/idle", m.idle)
	b.Run("watched/change", m.change)
}

// measurement is a registry, the program and an API server.
type measurement struct {
	registry *registry
	cluster  *cluster.Cluster
	server   *server
}

// quiet leaves out the time of the whole, which says nothing, and tells the load.
func quiet(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(load(), "machine-load")
}

// start waits until everything is mirrored, and then until it is written.
func (m *measurement) start(b *testing.B) {
	p := m.server
	mirrored := p.await(b, "full mirror", hasMirrored(m.registry))
	read := cpu(b, p.Process)
	written := p.await(b, "full write", hasWritten(m.registry))
	after := p.metrics(b)
	writes := after.Sum("isthmus_istio_writes_total")
	b.ReportMetric(mirrored.Seconds(), "mirrored-s")
	b.ReportMetric(read.Seconds(), "mirrored-cpu-s")
	b.ReportMetric(written.Seconds(), "written-s")
	b.ReportMetric(cpu(b, p.Process).Seconds(), "written-cpu-s")
	b.ReportMetric(cpu(b, m.cluster.API.Process).Seconds(), "apiserver-cpu-s")
	b.ReportMetric(writes, "writes")
	b.ReportMetric(writes/(written-mirrored).Seconds(), "writes/s")
	b.ReportMetric(after.Sum("isthmus_istio_objects"), "objects")
	quiet(b)
}

func (m *measurement) memory(b *testing.B) {
	resident, live := m.server.memory(b)
	b.ReportMetric(resident, "rss-MB")
	b.ReportMetric(live, "heap-MB")
	quiet(b)
}

// idle looks at the program while nothing changes, once it has polled the
// registry twice more: what a round brings is looked at in the next ones.
func (m *measurement) idle(b *testing.B) {
	const lists = servicecenter.ListServices
	enough := m.registry.Requests(lists) + 3
	m.server.await(b, "two rounds", func(probe.Metrics) bool { return m.registry.Requests(lists) >= enough })
	requests, used, began := m.registry.Requests(servicecenter.Any), cpu(b, m.server.Process), time.Now()
	<-time.After(*idle)
	took := time.Since(began)
	b.ReportMetric(100*(cpu(b, m.server.Process)-used).Seconds()/took.Seconds(), "cpu-%")
	b.ReportMetric(float64(m.registry.Requests(servicecenter.Any)-requests)/took.Seconds(), "requests/s")
	quiet(b)
}

// change adds single instances to services all over the registry at a pace, and
// then removes them again.
func (m *measurement) change(b *testing.B) {
	objects := watchObjects(b, m.cluster)
	used, began := cpu(b, m.server.Process), time.Now()
	added, gone := make([]*change, *changes/2), make([]*change, *changes/2)
	ids := make([]string, len(added))
	records := m.series(b, objects, len(added), func(n int) *change {
		added[n] = &change{host: host(m.service(n)), there: true, made: time.Now()}
		ids[n], added[n].address = m.registry.grow(m.service(n))
		return added[n]
	})
	records = append(records, m.series(b, objects, len(gone), func(n int) *change {
		gone[n] = &change{host: added[n].host, address: added[n].address, object: added[n].object, made: time.Now()}
		m.registry.UnregisterInstance(m.registry.live[m.service(n)], ids[n])
		return gone[n]
	})...)
	share := (cpu(b, m.server.Process) - used).Seconds() / time.Since(began).Seconds()
	var written sample
	for _, c := range append(added, gone...) {
		written = append(written, c.took)
	}
	events, moved := objects.counts()
	b.ReportMetric(100*share, "cpu-%")
	b.ReportMetric(records.ms(0.5), "record-ms")
	b.ReportMetric(records.ms(0.99), "record-p99-ms")
	b.ReportMetric(written.ms(0.5), "written-ms")
	b.ReportMetric(written.ms(0.99), "written-p99-ms")
	b.ReportMetric(float64(events)/float64(len(written)), "writes/change")
	b.ReportMetric(float64(moved), "ports-changed")
	quiet(b)
}

// service is that of the nth change: they are spread over all but the largest,
// of which the admin API takes long to tell.
func (m *measurement) service(n int) int {
	few := min(100, len(m.registry.live)/2)
	return few + n*7919%(len(m.registry.live)-few)
}

// series makes changes at a pace, waits until all are written, and returns how
// long each took to be in the catalog. Only the oldest that is not there yet is
// asked after, or the asking would be measured.
func (m *measurement) series(b *testing.B, objects *spectator, count int, step func(n int) *change) sample {
	b.Helper()
	records := make(sample, count)
	made := make(chan *change, count)
	var asking sync.WaitGroup
	asking.Go(func() {
		for n := range count {
			c := <-made
			m.server.awaitRecord(b, c.host, c.address, c.there)
			records[n] = time.Since(c.made)
		}
	})
	next := time.NewTicker(*pace)
	defer next.Stop()
	for n := range count {
		<-next.C
		c := step(n)
		objects.expect(c)
		made <- c
	}
	asking.Wait()
	objects.awaitAll(b)
	return records
}
