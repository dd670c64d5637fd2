package scale_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkService changes one endpoint of a service, by the size of the service
// and how many endpoints an object may have.
func BenchmarkService(b *testing.B) {
	c := startCluster(b)
	for _, size := range []int{200, 2000, 5000} {
		r := newRegistry(b, 1, 1)
		for range size - 1 {
			r.grow(0)
		}
		r.size[0] = size
		for _, most := range []int{250, 500, 1000, 2000, 3000} {
			b.Run(fmt.Sprintf("endpoints=%d/shardSize=%d", size, most), func(b *testing.B) {
				s := defaults()
				s.poll, s.quiet, s.shardSize = 100*time.Millisecond, 10*time.Millisecond, most
				m := &measurement{registry: r, cluster: c, server: serve(b, c, r, s)}
				m.server.await(b, "full write", hasSettled(r))
				m.changeOne(b)
				m.server.stop(b)
			})
		}
	}
}

// hasSettled is that everything is written, and no object is superfluous.
func hasSettled(r *registry) func(metrics) bool {
	return func(m metrics) bool {
		return hasMirrored(r)(m) && m.sum("isthmus_istio_objects") > 0 && m.sum("isthmus_istio_writes_total") > 0 &&
			m.sum("isthmus_istio_pending") == 0
	}
}

// changeOne makes changes of a service one after the other.
func (m *measurement) changeOne(b *testing.B) {
	const some = 10
	objects := watchObjects(b, m.cluster)
	used, served := cpu(b, m.server.Process), cpu(b, m.cluster.API.Process)
	var written sample
	for range some {
		c := &change{host: host(0), there: true, made: time.Now()}
		id, address := m.registry.grow(0)
		c.address = address
		objects.expect(c)
		objects.awaitAll(b)
		written = append(written, c.took)
		gone := &change{host: host(0), address: address, object: c.object, made: time.Now()}
		m.registry.UnregisterInstance(m.registry.live[0], id)
		objects.expect(gone)
		objects.awaitAll(b)
		written = append(written, gone.took)
	}
	events, moved := objects.counts()
	most, count := 0, 0
	for _, n := range objects.bytes {
		most, count = max(most, n), count+1
	}
	b.ReportMetric(float64(count), "objects")
	b.ReportMetric(float64(most)/1000, "largest-kB")
	b.ReportMetric((cpu(b, m.server.Process)-used).Seconds()*1000/float64(len(written)), "cpu-ms/change")
	b.ReportMetric((cpu(b, m.cluster.API.Process)-served).Seconds()*1000/float64(len(written)), "apiserver-ms/change")
	b.ReportMetric(written.ms(0.5), "written-ms")
	b.ReportMetric(float64(events)/float64(len(written)), "writes/change")
	b.ReportMetric(float64(moved), "ports-changed")
	quiet(b)
}
