package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// report is what was measured, to be printed at the end.
type report struct {
	mu    sync.Mutex
	lines []string
}

var figures report

func (r *report) add(t interface{ Name() string }, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%-36s %s", strings.TrimPrefix(t.Name(), "Test"), fmt.Sprintf(format, args...)))
}

func (r *report) print() {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.lines)
	for _, line := range r.lines {
		fmt.Println("figures:", line)
	}
}

// spread is durations in few words.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[min(len(all)-1, int(share*float64(len(all))))].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, slowest %s", at(0.5), at(0.99), at(1))
}
