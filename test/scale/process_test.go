package scale

import (
	"math"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// cpu is the processor time the server has used.
func (s *server) cpu(tb testing.TB) time.Duration {
	tb.Helper()
	return probe.CPU(tb, s.command.Process.Pid)
}

// peak is the most that the server ever had in memory, in bytes.
func (s *server) peak(tb testing.TB) float64 {
	tb.Helper()
	return probe.Memory(tb, s.command.Process.Pid, "VmHWM")
}

// memory is what the server holds, in bytes.
type memory struct {
	rss   float64 // as the kernel counts it
	heap  float64 // live objects after a collection
	stack float64
}

// memory returns what the server holds once it has collected its garbage.
// Nothing makes it do so but garbage and, every two minutes, time. So it is
// asked for its metrics until it has collected often enough; the least that it
// held meanwhile is what lives.
func (s *server) memory(tb testing.TB, collections float64) memory {
	tb.Helper()
	const collected = "go_gc_duration_seconds_count"
	m := s.metrics(tb)
	until := m.Sum(collected) + collections
	held := memory{heap: math.Inf(1)}
	s.await(tb, "garbage collection", func() bool {
		m = s.metrics(tb)
		held.heap = min(held.heap, m.Sum("go_memstats_heap_alloc_bytes"))
		return m.Sum(collected) >= until
	})
	held.rss = m.Sum("process_resident_memory_bytes")
	held.stack = m.Sum("go_memstats_stack_inuse_bytes")
	return held
}
