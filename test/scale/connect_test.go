package scale

import "testing"

// memory measures what the server holds for each client.
func (m *measurement) memory(b *testing.B) {
	before := m.server.memory(b, 3)
	m.fleet.connect(b, m.scriptOf)
	defer m.fleet.disconnect(b)
	settle()
	after := m.server.memory(b, 3)
	const kib = 1 << 10
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
		sent, got, used := m.resources(b), m.fleet.meter.received.Load(), m.server.cpu(b)
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
	return m.server.metrics(b).Sum("isthmus_push_resources_total")
}
