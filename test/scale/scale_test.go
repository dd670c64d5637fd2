package scale

import (
	"testing"
	"time"
)

// BenchmarkDelta measures clients that take differences, as Envoy does with
// delta xDS.
func BenchmarkDelta(b *testing.B) {
	m := newMeasurement(b, *services, all(envoyScript(true, *services, nil)))
	b.Run("memory", m.memory)
	b.Run("connect", m.connect)
	b.Run("change", m.change)
	b.Run("resume", m.resume)
}

// BenchmarkSotW measures clients that take the state of the world.
func BenchmarkSotW(b *testing.B) {
	m := newMeasurement(b, *services, all(envoyScript(false, *services, nil)))
	b.Run("memory", m.memory)
	b.Run("connect", m.connect)
	b.Run("change", m.change)
}

// BenchmarkGRPC measures clients that ask for ten services each, spread evenly
// over all, as proxyless gRPC does.
func BenchmarkGRPC(b *testing.B) {
	n := min(10, *services)
	first := func(client int) int { return client * n % *services }
	m := newMeasurement(b, *services, func(client int) *script { return grpcScript(first(client), n, *services) })
	m.concerned = func(service int) (clients int) {
		for client := range *streams {
			if (service-first(client)+*services)%*services < n {
				clients++
			}
		}
		return clients
	}
	b.Run("memory", m.memory)
	b.Run("connect", m.connect)
	b.Run("change", m.change)
}

// BenchmarkFlat compares the same changes for the same clients with ten times
// as many services in the registry, none of which the clients asked for. Both
// servers take turns, so that whatever else the machine does strikes both.
func BenchmarkFlat(b *testing.B) {
	var both [2]*measurement
	var cpu, last [2]sample
	for i, factor := range []int{1, 10} {
		m := newMeasurement(b, *services*factor, all(selectiveScript(*services)))
		m.fleet.connect(b, m.scriptOf)
		defer m.fleet.disconnect(b)
		both[i] = m
	}
	settle()
	for n := range *changes {
		for i, m := range both {
			before := m.server.cpu(b)
			took := m.step(b, n)
			cpu[i] = append(cpu[i], ms(m.server.cpu(b)-before))
			last[i] = append(last[i], allMs(took).quantile(1))
		}
	}
	for i, name := range []string{"few", "many"} {
		both[i].fleet.verify(b)
		b.ReportMetric(cpu[i].median(), name+"-cpu-ms/change")
		b.ReportMetric(last[i].median(), name+"-last-ms")
	}
	b.ReportMetric(cpu[1].median()/cpu[0].median(), "cpu-ratio")
	quiet(b)
}

// measurement is a server with its registry and its clients-to-be.
type measurement struct {
	registry  *registry
	server    *server
	fleet     *fleet
	scriptOf  func(client int) *script
	concerned func(service int) (clients int)
}

func newMeasurement(b *testing.B, services int, scriptOf func(int) *script) *measurement {
	b.Helper()
	r := newRegistry(b, services, *endpoints)
	s := startServer(b, r)
	return &measurement{r, s, newFleet(s, *streams), scriptOf, func(int) int { return *streams }}
}

// all has every client say the same.
func all(s *script) func(int) *script { return func(int) *script { return s } }

// settle leaves the server time to take in the last acknowledgements.
func settle() { time.Sleep(30 * time.Millisecond) }

// quiet leaves out the time of the whole, which says nothing.
func quiet(b *testing.B) { b.ReportMetric(0, "ns/op") }

// step makes the nth change and returns how long it took to reach each client
// it concerns. Changes go round the services that clients ask for.
func (m *measurement) step(b *testing.B, n int) []time.Duration {
	b.Helper()
	service := n * 7 % *services
	took := m.fleet.follow(b, m.concerned(service), func() time.Time { return m.registry.change(b, service) })
	settle()
	return took
}

// memory measures what the server holds for each client.
func (m *measurement) memory(b *testing.B) {
	before := m.server.memory(b)
	m.fleet.connect(b, m.scriptOf)
	defer m.fleet.disconnect(b)
	settle()
	after := m.server.memory(b)
	const mib, kib = 1 << 20, 1 << 10
	n := float64(*streams)
	b.ReportMetric(before.rss/mib, "alone-rss-MiB")
	b.ReportMetric(before.heap/mib, "alone-heap-MiB")
	b.ReportMetric((after.rss-before.rss)/n/kib, "rss-KiB/stream")
	b.ReportMetric((after.heap-before.heap)/n/kib, "heap-KiB/stream")
	b.ReportMetric((after.stack-before.stack)/n/kib, "stack-KiB/stream")
	quiet(b)
}

// connect measures all clients connecting at once, with nothing to resume.
func (m *measurement) connect(b *testing.B) {
	m.storms(b, m.scriptOf)
}

// resume measures all clients coming back with what they hold.
func (m *measurement) resume(b *testing.B) {
	m.fleet.connect(b, m.scriptOf)
	m.fleet.disconnect(b)
	m.storms(b, all(envoyScript(true, *services, m.fleet.holding())))
}

// storms connects all clients several times.
func (m *measurement) storms(b *testing.B, scriptOf func(int) *script) {
	b.Helper()
	var half, last, cpu, received, resources sample
	for range *rounds {
		used, got, sent := m.server.cpu(b), m.fleet.meter.received.Load(), m.resources(b)
		took := allMs(m.fleet.connect(b, scriptOf))
		settle()
		half, last = append(half, took.median()), append(last, took.quantile(1))
		cpu = append(cpu, ms(m.server.cpu(b)-used))
		received = append(received, float64(m.fleet.meter.received.Load()-got)/1024)
		resources = append(resources, m.resources(b)-sent)
		m.fleet.disconnect(b)
	}
	m.fleet.verify(b)
	n := float64(*streams)
	b.ReportMetric(half.median(), "half-ms")
	b.ReportMetric(last.median(), "last-ms")
	b.ReportMetric(cpu.median()/n, "cpu-ms/stream")
	b.ReportMetric(received.median()/n, "rx-KiB/stream")
	b.ReportMetric(resources.median()/n, "resources/stream")
	quiet(b)
}

// resources is how many the server has sent.
func (m *measurement) resources(b *testing.B) float64 {
	b.Helper()
	return m.server.metrics(b).sum("isthmus_push_resources_total")
}

const acceptSeconds = "isthmus_commit_to_accept_seconds"

// acceptances waits until the server has counted an acceptance of each
// response, and none more, and returns its metrics as of then.
func (m *measurement) acceptances(b *testing.B, before metrics, responses int) (after metrics) {
	b.Helper()
	total := 0.0
	m.server.await(b, "acceptance of every response", func() bool {
		after = m.server.metrics(b)
		total = after.since(before, acceptSeconds).total()
		return total >= float64(responses)
	})
	if total > float64(responses) {
		b.Fatalf("%v acceptances of %d responses", total, responses)
	}
	return after
}

// change measures how a change of one endpoint travels.
func (m *measurement) change(b *testing.B) {
	m.fleet.connect(b, m.scriptOf)
	defer m.fleet.disconnect(b)
	settle()
	before := m.server.metrics(b)
	received, sent := m.fleet.meter.received.Load(), m.fleet.meter.sent.Load()
	var every, first, last, cpu sample
	for n := range *changes {
		used := m.server.cpu(b)
		took := allMs(m.step(b, n))
		cpu = append(cpu, ms(m.server.cpu(b)-used))
		every = append(every, took...)
		first, last = append(first, took.quantile(0)), append(last, took.quantile(1))
	}
	m.fleet.verify(b)
	received, sent = m.fleet.meter.received.Load()-received, m.fleet.meter.sent.Load()-sent
	after := m.acceptances(b, before, len(every))
	b.ReportMetric(first.median(), "first-ms")
	b.ReportMetric(last.median(), "last-ms")
	b.ReportMetric(last.quantile(0.99), "last-p99-ms")
	b.ReportMetric(every.median(), "stream-ms")
	b.ReportMetric(every.quantile(0.99), "stream-p99-ms")
	for metric, unit := range map[string]string{
		"isthmus_observe_to_commit_seconds": "observe-commit-ms",
		"isthmus_commit_to_catalog_seconds": "commit-catalog-ms",
		"isthmus_commit_to_send_seconds":    "commit-send-ms",
	} {
		b.ReportMetric(1000*after.since(before, metric).quantile(0.5), unit)
	}
	accepted := after.since(before, acceptSeconds)
	b.ReportMetric(1000*accepted.quantile(0.5), "commit-accept-ms")
	b.ReportMetric(1000*accepted.quantile(0.99), "commit-accept-p99-ms")
	b.ReportMetric(cpu.median(), "cpu-ms/change")
	b.ReportMetric(cpu.median()*1000*float64(*changes)/float64(len(every)), "cpu-us/accept")
	b.ReportMetric(float64(received)/float64(len(every)), "rx-B/accept")
	b.ReportMetric(float64(sent)/float64(len(every)), "tx-B/accept")
	quiet(b)
}
