package scale

import (
	"flag"
	"sync"
	"testing"
	"time"
)

var pace = flag.Int("pace", 50, "changes a second in the benchmark of a steady stream, each of another file")

// BenchmarkSteady measures changes of different files that follow each other
// without waiting for one to arrive, as a busy registry makes them: from the
// moment a file is in place to the moment a client acknowledges the change.
func BenchmarkSteady(b *testing.B) {
	m := newMeasurement(b, *services, all(envoyScript(true, *services, nil)))
	m.fleet.connect(b, m.scriptOf)
	defer m.fleet.disconnect(b)
	settle()
	s := &steady{written: map[string]time.Time{}, done: make(chan struct{}), left: *changes}
	m.fleet.steady.Store(s)
	ticker := time.NewTicker(time.Second / time.Duration(*pace))
	defer ticker.Stop()
	for n := range *changes {
		service := m.targets[n%len(m.targets)]
		s.write(clusterName(service), func() time.Time { return m.registry.change(b, service) })
		<-ticker.C
	}
	select {
	case <-s.done:
	case err := <-m.fleet.broken:
		b.Fatal(err)
	case <-time.After(patience):
		b.Fatalf("%d of %d changes have not arrived after %v", s.left, *changes, patience)
	}
	b.ReportMetric(s.took.median(), "p50-ms")
	b.ReportMetric(s.took.quantile(0.99), "p99-ms")
	b.ReportMetric(s.took.quantile(1), "longest-ms")
	quiet(b)
}

// steady is a stream of changes that the first client of a fleet follows.
type steady struct {
	mu      sync.Mutex
	written map[string]time.Time // by name of what a change is of, until it arrives
	took    sample               // in ms
	left    int
	done    chan struct{}
}

// write makes a change. The lock is held until the time is noted, for the change
// may arrive at any moment.
func (s *steady) write(name string, change func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := change()
	if _, under := s.written[name]; under {
		s.left-- // two changes that arrive as one count from the first
		return
	}
	s.written[name] = at
}

// acknowledged notes that the client has acknowledged a response.
func (s *steady) acknowledged(r *response, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range r.versions {
		at, expected := s.written[name]
		if r.typeURL != assignments || !expected {
			continue
		}
		delete(s.written, name)
		s.took = append(s.took, ms(now.Sub(at)))
		if s.left--; s.left == 0 {
			close(s.done)
		}
	}
}
