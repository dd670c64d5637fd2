package scale

import "testing"

// change measures how a change of one endpoint travels.
func (m *measurement) change(b *testing.B) {
	m.fleet.connect(b, m.scriptOf)
	defer m.fleet.disconnect(b)
	settle()
	var t travel
	before := m.server.metrics(b)
	received, sent := m.fleet.meter.received.Load(), m.fleet.meter.sent.Load()
	for n := range *changes {
		used := m.server.cpu(b)
		took := allMs(m.step(b, n))
		t.note(took, ms(m.server.cpu(b)-used))
	}
	m.fleet.verify(b)
	responses := float64(len(t.every))
	t.report(b)
	b.ReportMetric(float64(m.fleet.meter.received.Load()-received)/responses, "rx-B/accept")
	b.ReportMetric(float64(m.fleet.meter.sent.Load()-sent)/responses, "tx-B/accept")
	after := m.acceptances(b, before, responses)
	reportStages(b, before, after)
	reportShares(b, before, after, t.every.mean())
	quiet(b)
}

// travel is what several changes took, in ms.
type travel struct {
	every       sample // to each client
	first, last sample // to the first and last client, by change
	cpu         sample // of the server, by change
}

func (t *travel) note(took sample, cpu float64) {
	t.every = append(t.every, took...)
	t.first, t.last = append(t.first, took.quantile(0)), append(t.last, took.quantile(1))
	t.cpu = append(t.cpu, cpu)
}

func (t *travel) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(t.first.median(), "first-ms")
	b.ReportMetric(t.last.median(), "last-ms")
	b.ReportMetric(t.last.quantile(0.99), "last-p99-ms")
	b.ReportMetric(t.every.median(), "stream-ms")
	b.ReportMetric(t.every.quantile(0.99), "stream-p99-ms")
	b.ReportMetric(t.cpu.median(), "cpu-ms/change")
	concerned := float64(len(t.every)) / float64(len(t.cpu))
	b.ReportMetric(1000*t.cpu.median()/concerned, "cpu-us/accept")
}

const acceptSeconds = "isthmus_commit_to_accept_seconds"

// acceptances waits until the server has counted an acceptance of each
// response, and none more, and returns its metrics as of then.
func (m *measurement) acceptances(b *testing.B, before metrics, responses float64) (after metrics) {
	b.Helper()
	var total float64
	m.server.await(b, "acceptance of every response", func() bool {
		after = m.server.metrics(b)
		total = after.since(before, acceptSeconds).total()
		return total >= responses
	})
	if total > responses {
		b.Fatalf("%v acceptances of %v responses", total, responses)
	}
	return after
}

// reportStages reports what the server itself says of where the time went.
func reportStages(b *testing.B, before, after metrics) {
	b.Helper()
	for _, stage := range []struct {
		metric, unit string
		quantile     float64
	}{
		{"isthmus_observe_to_commit_seconds", "observe-commit-ms", 0.5},
		{"isthmus_commit_to_catalog_seconds", "commit-catalog-ms", 0.5},
		{"isthmus_commit_to_send_seconds", "commit-send-ms", 0.5},
		{acceptSeconds, "commit-accept-ms", 0.5},
		{acceptSeconds, "commit-accept-p99-ms", 0.99},
	} {
		b.ReportMetric(1000*after.since(before, stage.metric).quantile(stage.quantile), stage.unit)
	}
}

// reportShares reports how the mean time of a change divides among the stages
// it passes: the file is noticed, read and committed, merged, sent, accepted.
func reportShares(b *testing.B, before, after metrics, whole float64) {
	b.Helper()
	last := 0.0
	for _, stage := range []struct{ metric, unit string }{
		{"isthmus_commit_to_catalog_seconds", "mean-merge-ms"},
		{"isthmus_commit_to_send_seconds", "mean-push-ms"},
		{acceptSeconds, "mean-accept-ms"},
	} {
		mean := 1000 * after.mean(before, stage.metric)
		b.ReportMetric(mean-last, stage.unit)
		last = mean
	}
	b.ReportMetric(1000*after.mean(before, "isthmus_observe_to_commit_seconds"), "mean-read-ms")
	b.ReportMetric(whole, "mean-stream-ms")
}
