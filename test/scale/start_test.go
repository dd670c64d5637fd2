package scale

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// BenchmarkStart measures how long a mesh of heavy-tailed sizes takes until it
// is served, read from files and restored from disk, and what is sent again to
// a client that comes back afterwards. With -against another program does the
// same in turns with it, so that whatever else the machine does strikes both.
func BenchmarkStart(b *testing.B) {
	sizes := heavyTailed(*meshServices, *meshEndpoints, *meshLargest)
	r := newRegistry(b, sizes, full)
	dir, held := saveMesh(b, r)
	every := contenders(b)
	found := make([]start, len(every))
	for range *rounds {
		for i, c := range every {
			found[i].cold(b, c.path, r)
			found[i].restored(b, c.path, r, dir, held)
		}
	}
	for i, c := range every {
		b.Run(c.name, func(b *testing.B) { found[i].report(b) })
	}
}

// contender is a program that is measured.
type contender struct{ name, path string }

func contenders(b *testing.B) []contender {
	b.Helper()
	list := []contender{{"this", program(b)}}
	if *against != "" {
		list = append(list, contender{"against", *against})
	}
	return list
}

// saveMesh leaves a folder with everything a registry says, and returns what a
// client holds of it.
func saveMesh(tb testing.TB, r *registry) (dir string, held map[string]map[string]string) {
	tb.Helper()
	dir = tb.TempDir()
	s := startServer(tb, program(tb), r, dir)
	defer s.stop(tb)
	f := newFleet(s, 1)
	f.connect(tb, all(envoyScript(true, r.services(), nil)))
	f.disconnect(tb)
	s.await(tb, "saving", func() bool {
		m := s.metrics(tb)
		return m.Sum("isthmus_store_saved_revision") == m.Sum("isthmus_store_revision")
	})
	return dir, f.holding()
}

// start is what several starts took: until the server was ready, and until it
// had read everything there is to read.
type start struct {
	coldReady, coldCPU, coldPeak sample
	ready, readyCPU, readyPeak   sample // restored from disk
	live, liveCPU, livePeak      sample // restored, and the files read once more
	resent                       sample
}

// cold starts with nothing but files.
func (s *start) cold(b *testing.B, program string, r *registry) {
	b.Helper()
	server := startServer(b, program, r, "")
	defer server.stop(b)
	s.coldReady = append(s.coldReady, server.age())
	s.coldCPU = append(s.coldCPU, server.cpu(b).Seconds())
	s.coldPeak = append(s.coldPeak, server.peak(b)/mib)
}

// restored starts with what was saved. A client that has everything comes back
// as soon as it can, and must not be sent anything: neither from what was
// restored, nor when the files turn out to say the same.
func (s *start) restored(b *testing.B, program string, r *registry, dir string, held map[string]map[string]string) {
	b.Helper()
	server := startServer(b, program, r, dir)
	defer server.stop(b)
	s.ready = append(s.ready, server.age())
	s.readyCPU = append(s.readyCPU, server.cpu(b).Seconds())
	s.readyPeak = append(s.readyPeak, server.peak(b)/mib)
	f := newFleet(server, 1)
	f.connect(b, all(envoyScript(true, r.services(), held)))
	server.await(b, "reading of the files", func() bool { return server.live(b) })
	s.live = append(s.live, server.age())
	s.liveCPU = append(s.liveCPU, server.cpu(b).Seconds())
	s.livePeak = append(s.livePeak, server.peak(b)/mib)
	settle()
	resent := server.metrics(b).Sum("isthmus_push_resources_total")
	if s.resent = append(s.resent, resent); resent > 0 {
		b.Fatalf("%v resources are sent to a client that holds them", resent)
	}
	f.disconnect(b)
}

func (s *start) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(s.coldReady.median(), "cold-ready-s")
	b.ReportMetric(s.coldCPU.median(), "cold-cpu-s")
	b.ReportMetric(s.coldPeak.median(), "cold-peak-MiB")
	b.ReportMetric(s.ready.median(), "disk-ready-s")
	b.ReportMetric(s.readyCPU.median(), "disk-cpu-s")
	b.ReportMetric(s.readyPeak.median(), "disk-peak-MiB")
	b.ReportMetric(s.live.median(), "live-s")
	b.ReportMetric(s.liveCPU.median(), "live-cpu-s")
	b.ReportMetric(s.livePeak.median(), "live-peak-MiB")
	b.ReportMetric(s.resent.quantile(1), "resent-resources")
	quiet(b)
}

// age is for how long the server has been there, in seconds.
func (s *server) age() float64 { return time.Since(s.started).Seconds() }

// live reports whether the server has read everything since it started.
func (s *server) live(tb testing.TB) bool {
	tb.Helper()
	var sources []struct{ State string }
	if err := json.NewDecoder(bytes.NewReader(s.get("/api/v1/sources"))).Decode(&sources); err != nil {
		tb.Fatal(err)
	}
	for _, source := range sources {
		if source.State != "live" {
			return false
		}
	}
	return true
}
