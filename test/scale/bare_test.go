package scale

import (
	"testing"
	"time"
)

// BenchmarkBare compares the program with a bare gRPC server, which hands one
// encoded response of the same size to each stream and reads the ACK, and does
// nothing else: it decodes nothing and remembers nothing. Both have as many
// clients that say the same, and take turns, so that whatever else the machine
// does strikes both.
//
// A bare server that leaves its connections to gRPC is dearer than one that gives
// them the options which the program gives them, so both are measured.
func BenchmarkBare(b *testing.B) {
	for name, delta := range map[string]bool{"SotW": false, "Delta": true} {
		b.Run(name+"/SameOptions", func(b *testing.B) { besideBare(b, delta, false) })
		b.Run(name+"/NoOptions", func(b *testing.B) { besideBare(b, delta, true) })
	}
}

func besideBare(b *testing.B, delta, plain bool) {
	m := newMeasurement(b, *services, all(envoyScript(delta, *services, nil)))
	ours := m.server.holds(b, func() { m.fleet.connect(b, m.scriptOf) })
	b.Cleanup(func() { m.fleet.disconnect(b) })
	m.step(b, 0)

	f := newFleet(startBare(b, int(m.fleet.bytes.Load()), plain), *streams)
	theirs := f.server.holds(b, func() { f.connect(b, all(bareScript(delta, *services))) })
	b.Cleanup(func() { f.disconnect(b) })
	send := func() time.Time {
		now := time.Now()
		f.server.get("/send")
		return now
	}

	var cpu, bare, ratio sample // µs per ACK
	for n := range *changes {
		cpu = append(cpu, m.server.each(b, func() { m.step(b, n+1) }))
		bare = append(bare, f.server.each(b, func() { f.follow(b, *streams, send); settle() }))
		ratio = append(ratio, cpu[n]/bare[n])
	}
	m.fleet.verify(b)
	f.verify(b)
	b.ReportMetric(cpu.median(), "cpu-us/accept")
	b.ReportMetric(bare.median(), "bare-cpu-us/accept")
	b.ReportMetric(ratio.median(), "cpu-ratio")
	ours.report(b, "")
	theirs.report(b, "bare-")
	quiet(b)
}

// each is the processor time that a server uses for one client while something
// is done, in µs.
func (s *server) each(b *testing.B, do func()) float64 {
	b.Helper()
	used := s.cpu(b)
	do()
	return 1000 * ms(s.cpu(b)-used) / float64(*streams)
}

// holds returns what a server holds for each client once they are connected.
func (s *server) holds(b *testing.B, connect func()) memory {
	b.Helper()
	before := s.memory(b, 3)
	connect()
	settle()
	after, n := s.memory(b, 3), float64(*streams)
	return memory{(after.rss - before.rss) / n, (after.heap - before.heap) / n, (after.stack - before.stack) / n}
}

// report gives what a server holds for each client.
func (m memory) report(b *testing.B, whose string) {
	b.Helper()
	b.ReportMetric(m.rss/1000, whose+"rss-kB/stream")
	b.ReportMetric(m.heap/1000, whose+"heap-kB/stream")
	b.ReportMetric(m.stack/1000, whose+"stack-kB/stream")
}

// bareScript asks for the load assignments of all services by name, and is
// content with one of them: its ACKs are those of a client that has all.
func bareScript(delta bool, services int) *script {
	s := &script{delta: delta, agent: "envoy"}
	s.steps = []step{s.asking(assignments, namesOf(clusterName, 0, services, services), 1, nil)}
	return s
}
