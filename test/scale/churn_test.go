package scale

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkChurn has clients come and go without end, and compares what the
// server holds afterwards with what it held after a third of them: with nobody
// connected, and with everybody. Whatever leaks with each stream shows.
func BenchmarkChurn(b *testing.B) {
	n := min(10, *services)
	first := func(client int) int { return client * n % *services }
	m := newMeasurement(b, *services, func(client int) *script {
		if client%2 == 0 {
			return selectiveScript(n)
		}
		return grpcScript(first(client), n, *services)
	})
	var early, late [2]plateau
	opened := m.churn(*churning / 3)
	early[0], early[1] = m.plateaus(b)
	opened += m.churn(*churning * 2 / 3)
	late[0], late[1] = m.plateaus(b)
	b.ReportMetric(float64(opened), "streams")
	for i, who := range []string{"nobody", "everybody"} {
		b.ReportMetric(early[i].heap/(1<<20), who+"-early-heap-MiB")
		b.ReportMetric(late[i].heap/(1<<20), who+"-late-heap-MiB")
		b.ReportMetric(early[i].goroutines, who+"-early-goroutines")
		b.ReportMetric(late[i].goroutines, who+"-late-goroutines")
		late[i].mustBe(b, who, early[i])
	}
	quiet(b)
}

// plateau is what the server holds at rest.
type plateau struct{ heap, goroutines float64 }

// mustBe fails if the server holds more than it did. The heap is that after a
// collection, whose end differs a little from one to the next; a leak of one
// kilobyte for each stream would show.
func (p plateau) mustBe(b *testing.B, who string, before plateau) {
	b.Helper()
	const spareHeap, spareGoroutines = 4 << 20, 10
	if p.heap > before.heap*1.1+spareHeap || p.goroutines > before.goroutines+spareGoroutines {
		b.Errorf("with %s connected the server held %.0f bytes in %.0f goroutines, and now holds %.0f in %.0f",
			who, before.heap, before.goroutines, p.heap, p.goroutines)
	}
}

// plateaus measures with nobody connected, and with everybody.
func (m *measurement) plateaus(b *testing.B) (nobody, everybody plateau) {
	b.Helper()
	m.server.await(b, "end of all clients", func() bool { return m.server.metrics(b).Sum("isthmus_clients") == 0 })
	nobody = m.plateau(b)
	m.fleet.connect(b, m.scriptOf)
	settle()
	everybody = m.plateau(b)
	m.fleet.disconnect(b)
	return nobody, everybody
}

func (m *measurement) plateau(b *testing.B) plateau {
	b.Helper()
	held := m.server.memory(b, 3)
	return plateau{held.heap, m.server.metrics(b).Sum("go_goroutines")}
}

// churn has every client open one stream after the other, each for up to a
// second, on connections of their own. It returns how many there were.
func (m *measurement) churn(d time.Duration) uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var opened atomic.Uint64
	var running sync.WaitGroup
	for i := range *streams {
		running.Go(func() {
			for ctx.Err() == nil {
				life, end := context.WithTimeout(ctx, rand.N(time.Second)) //nolint:gosec // nothing is secret
				_ = (&client{script: m.scriptOf(i), number: i, fleet: m.fleet}).run(life)
				end()
				opened.Add(1)
			}
		})
	}
	running.Wait()
	return opened.Load()
}
