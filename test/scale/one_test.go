package scale

import (
	"testing"
	"time"
)

// BenchmarkMesh measures a change of one endpoint in services of the median
// size among everything else a mesh has, for a client that has all of it, and
// what the server holds.
func BenchmarkMesh(b *testing.B) {
	sizes := heavyTailed(*meshServices, *meshEndpoints, *meshLargest)
	for _, c := range contenders(b) {
		b.Run(c.name, func(b *testing.B) {
			r := newRegistry(b, sizes, full)
			s := startServer(b, c.path, r, b.TempDir())
			m := &measurement{
				r, s, newFleet(s, 1), all(envoyScript(true, len(sizes), nil)),
				func(int) int { return 1 }, ofSize(sizes, 1000, 4),
			}
			b.Run("change", m.change)
			b.Run("rest", m.rest)
		})
	}
}

// rest measures what the server holds when nothing happens, and what it does
// then. Within that time the runtime collects garbage at least once, and the
// next collection is due at twice what was alive then.
func (m *measurement) rest(b *testing.B) {
	peak := m.server.peak(b)
	used, since := m.server.cpu(b), m.server.age()
	time.Sleep(130 * time.Second)
	held := m.server.metrics(b)
	b.ReportMetric(held.Sum("go_memstats_next_gc_bytes")/2/mib, "heap-MiB")
	b.ReportMetric(held.Sum("process_resident_memory_bytes")/mib, "rss-MiB")
	b.ReportMetric(peak/mib, "peak-MiB")
	b.ReportMetric(ms(m.server.cpu(b)-used)/(m.server.age()-since), "cpu-ms/s")
	quiet(b)
}

// BenchmarkOne measures a change of one endpoint in a service of 20,000, and
// for comparison in one of 20.
func BenchmarkOne(b *testing.B) {
	for _, c := range contenders(b) {
		for _, delta := range []bool{true, false} {
			r := newRegistry(b, []int{20, *meshLargest}, full)
			s := startServer(b, c.path, r, "")
			for service, name := range []string{"small", "large"} {
				m := &measurement{
					r, s, newFleet(s, 1), all(envoyScript(delta, r.services(), nil)),
					func(int) int { return 1 },
					[]int{service},
				}
				b.Run(c.name+"/"+variant(delta)+"/"+name, m.change)
			}
		}
	}
}

func variant(delta bool) string {
	if delta {
		return "delta"
	}
	return "sotw"
}
