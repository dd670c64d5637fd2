package scale

import (
	"sync"
	"testing"
	"time"
)

// BenchmarkWatched measures changes of a large mesh while an operator asks for the status and
// the events each second, and in turns with changes without requests.
func BenchmarkWatched(b *testing.B) {
	sizes := heavyTailed(*meshServices, *meshEndpoints, *meshLargest)
	r := newRegistry(b, sizes, full)
	s := startServer(b, program(b), r, "")
	f := newFleet(s, 1)
	f.connect(b, all(envoyScript(true, len(sizes), nil)))
	defer f.disconnect(b)
	settle()
	const turn = 20
	var took, cpu [2]sample // while nobody asks, and while somebody does
	list := ofSize(sizes, 1000, 4)
	for n := 0; n < 2**changes; {
		watched := n / turn % 2
		stop := func() {}
		if watched == 1 {
			stop = s.watch()
		}
		for range turn {
			before := s.cpu(b)
			arrived := f.follow(b, 1, func() time.Time { return r.change(b, list[n%len(list)]) })
			settle()
			cpu[watched] = append(cpu[watched], ms(s.cpu(b)-before))
			took[watched] = append(took[watched], allMs(arrived).quantile(1))
			n++
		}
		stop()
	}
	for i, name := range []string{"alone", "watched"} {
		b.ReportMetric(took[i].median(), name+"-p50-ms")
		b.ReportMetric(cpu[i].median(), name+"-cpu-ms/change")
	}
	b.ReportMetric(took[1].median()/took[0].median(), "p50-ratio")
	quiet(b)
}

// watch asks for the status and the events each second, until it is stopped.
func (s *server) watch() (stop func()) {
	done := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		again := time.NewTicker(time.Second)
		defer again.Stop()
		for {
			s.get("/api/v1/status")
			s.get("/api/v1/events?since=1m")
			select {
			case <-again.C:
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		asking.Wait()
	}
}
