package scale_test

import (
	"fmt"
	"iter"
	"testing"
	"time"
)

// BenchmarkService changes one endpoint of a service, by the size of the service
// and how many endpoints an object may have.
func BenchmarkService(b *testing.B) {
	c := startCluster(b)
	for size, limits := range sizesAndLimits() {
		r := newRegistry(b, 1, 1)
		for range size - 1 {
			r.grow(0)
		}
		r.size[0] = size
		for _, most := range limits {
			b.Run(fmt.Sprintf("endpoints=%d/shardSize=%d", size, most), func(b *testing.B) {
				s := defaults()
				s.poll, s.quiet, s.shardSize = 100*time.Millisecond, 10*time.Millisecond, most
				m := &measurement{registry: r, cluster: c, server: serve(b, c, r, s)}
				m.settle(b)
				m.changeOne(b)
				m.server.stop(b)
			})
		}
	}
}

// sizesAndLimits yields the sizes of services, each with how many endpoints an
// object may have, from many to few: objects are not united at once.
func sizesAndLimits() iter.Seq2[int, []int] {
	return func(yield func(int, []int) bool) {
		_ = yield(200, []int{1000, 100}) && yield(2000, []int{3000, 1000, 250, 100}) && yield(5000, []int{3000, 1000, 250, 100})
	}
}

// settle waits until everything is written, and no object is superfluous: it may
// be that there is nothing to write.
func (m *measurement) settle(b *testing.B) {
	b.Helper()
	m.server.await(b, "full mirror", hasMirrored(m.registry))
	<-time.After(time.Second) // as long as it takes at most to find out what to write
	m.server.await(b, "full write", hasWritten(m.registry))
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
