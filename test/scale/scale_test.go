package scale

import (
	"slices"
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
		b.Cleanup(func() { m.fleet.disconnect(b) })
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
	targets   []int // services to be changed, in this order and again
}

func newMeasurement(b *testing.B, registered int, scriptOf func(int) *script) *measurement {
	b.Helper()
	r := newRegistry(b, slices.Repeat([]int{*endpoints}, registered), brief)
	s := startServer(b, program(b), r, "")
	return &measurement{r, s, newFleet(s, *streams), scriptOf, func(int) int { return *streams }, targets(*services)}
}

// targets are services to be changed, one after the other: some of each range
// of numbers.
func targets(services int) []int {
	list := make([]int, services)
	for n := range list {
		list[n] = n * 7 % services
	}
	return list
}

// all has every client say the same.
func all(s *script) func(int) *script { return func(int) *script { return s } }

// settle leaves the server time to take in the last acknowledgements.
func settle() { time.Sleep(30 * time.Millisecond) }

// quiet leaves out the time of the whole, which says nothing.
func quiet(b *testing.B) { b.ReportMetric(0, "ns/op") }

// step makes the nth change and returns how long it took to reach each client
// it concerns.
func (m *measurement) step(b *testing.B, n int) []time.Duration {
	b.Helper()
	service := m.targets[n%len(m.targets)]
	took := m.fleet.follow(b, m.concerned(service), func() time.Time { return m.registry.change(b, service) })
	settle()
	return took
}
