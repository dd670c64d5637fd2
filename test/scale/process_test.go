package scale

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpu is the processor time the server has used. It is what utime and stime
// of /proc/PID/stat add up to, without their steps of 10 ms: the sum over its
// threads, none of which ends.
func (s *server) cpu(tb testing.TB) time.Duration {
	tb.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.command.Process.Pid))
	if err != nil || len(files) == 0 {
		tb.Fatal("no /proc/PID/task/*/schedstat: these benchmarks need Linux")
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// peak is the most that the server ever had in memory, in bytes.
func (s *server) peak(tb testing.TB) float64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		tb.Fatalf("the peak of memory in /proc/PID/status: %v", err)
	}
	return kib * 1024
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
	until := m.sum(collected) + collections
	held := memory{heap: math.Inf(1)}
	s.await(tb, "garbage collection", func() bool {
		m = s.metrics(tb)
		held.heap = min(held.heap, m.sum("go_memstats_heap_alloc_bytes"))
		return m.sum(collected) >= until
	})
	held.rss = m.sum("process_resident_memory_bytes")
	held.stack = m.sum("go_memstats_stack_inuse_bytes")
	return held
}
