package admin

import (
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/source"
)

// collector makes metrics of the parts' state at the time of a scrape, so that nothing has
// to be counted twice. Names and labels are API: they are listed in
// docs/reference/metrics.md.
type collector struct{ parts Parts }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("isthmus_"+name, help, labels, nil)
}

var (
	buildInfo = desc("build_info", "The program; always 1.", "version", "goversion")
	ready     = desc("ready", "Whether GET /readyz answers 200.")

	sourceListed   = desc("source_last_listing_timestamp_seconds", "When the last complete listing was stored by this process; 0 before the first.", "source")
	sourceUp       = desc("source_up", "Whether the source is live: 1 if what is served is what the registry says.", "source", "kind")
	sourceRecords  = desc("source_records", "Records stored for the source.", "source", "type")
	sourceRejected = desc("source_refused_total", "Objects the source has rejected.", "source")
	sourceHeld     = desc("source_held", "Records kept although the source no longer lists them.", "source")
	heldEndpoints  = desc("source_held_endpoints", "Endpoints among the held records.", "source")
	sourceChanges  = desc("source_record_changes_total", "Records that were added, changed or removed.", "source", "change")
	sourceBad      = desc("source_refused", "Objects that are rejected now.", "source")
	sourceAnswers  = desc("source_answers_total", "Answers of a registry that pushes.", "source", "type")
	sourceNACKs    = desc("source_nacks_total", "Answers of a registry that pushes that were NACKed.", "source", "type")
	sourceStreams  = desc("source_streams_rejected_total", "Streams and connections of registries that dial which were not served, or not any longer.", "source", "cause")

	catalogServices  = desc("catalog_services", "Services after merging.")
	catalogEndpoints = desc("catalog_endpoints", "Endpoints after merging, counted once per service port.")
	catalogRevision  = desc("catalog_revision", "Revision of the newest snapshot.")

	clients       = desc("clients", "Connected clients, by their worst state of any type.", "output", "state")
	pushResponses = desc("push_responses_total", "Responses sent.", "output", "type")
	pushResources = desc("push_resources_total", "Resources sent.", "output", "type")
	pushBytes     = desc("push_bytes_total", "Bytes of resources sent.", "output", "type")
	nacks         = desc("refusals_total", "Responses that clients NACKed.", "output", "type")
	panics        = desc("panics_total", "Panics that were survived.", "output", "where")
)

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildInfo, ready, sourceListed, sourceUp, sourceRecords, sourceHeld, heldEndpoints, sourceChanges, sourceRejected, sourceBad, sourceAnswers, sourceNACKs, sourceStreams, catalogServices, catalogEndpoints, catalogRevision,
		clients, pushResponses, pushResources, pushBytes, nacks, panics, reloadSuccess, reloadTime,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(buildInfo, 1, c.parts.Version, runtime.Version())
	isReady := 0.0
	if len(c.parts.Missing()) == 0 {
		isReady = 1
	}
	gauge(ready, isReady)
	for _, supervisor := range c.parts.Sources() {
		s := supervisor.Status()
		listed := 0.0
		if !s.LastListing.IsZero() {
			listed = float64(s.LastListing.UnixMilli()) / 1000
		}
		gauge(sourceListed, listed, s.Name)
		up := 0.0
		if s.State == source.StateLive || s.State == source.StateHeld && s.Held == 0 && !s.HeldUntil.IsZero() { // an operator's hold alone is no fault
			up = 1
		}
		gauge(sourceUp, up, s.Name, s.Kind)
		gauge(sourceRecords, float64(s.Services), s.Name, "service")
		gauge(sourceRecords, float64(s.Endpoints), s.Name, "endpoint")
		gauge(sourceHeld, float64(s.Held), s.Name)
		gauge(heldEndpoints, float64(s.HeldEndpoints), s.Name)
		counter(sourceChanges, s.Changes.Added, s.Name, "added")
		counter(sourceChanges, s.Changes.Changed, s.Name, "changed")
		counter(sourceChanges, s.Changes.Removed, s.Name, "removed")
		gauge(sourceBad, float64(len(s.Rejected)), s.Name)
		counter(sourceRejected, s.RejectedTotal, s.Name)
		for _, e := range supervisor.Exchanges() {
			counter(sourceAnswers, e.Received, s.Name, e.Type)
			counter(sourceNACKs, e.NACKed, s.Name, e.Type)
		}
		for cause, n := range supervisor.StreamsRejected() {
			counter(sourceStreams, n, s.Name, cause)
		}
	}
	snapshot := c.parts.Snapshot()
	gauge(catalogServices, float64(snapshot.Totals().Services))
	gauge(catalogEndpoints, float64(snapshot.Totals().Endpoints))
	gauge(catalogRevision, float64(snapshot.Revision))
	c.parts.Config().collect(ch)
	for _, f := range c.parts.faults() {
		counter(panics, f.Count, f.Output, f.Where)
	}
	for _, o := range c.parts.served() {
		for state, n := range clientStates(o.Engine.Clients()) {
			gauge(clients, float64(n), o.name, string(state))
		}
		for _, n := range o.Engine.Counts() {
			counter(pushResponses, n.Responses, o.name, n.Type)
			counter(pushResources, n.Resources, o.name, n.Type)
			counter(pushBytes, n.Bytes, o.name, n.Type)
			counter(nacks, n.NACKs, o.name, n.Type)
		}
		for _, p := range o.Engine.Panics() {
			counter(panics, p.Count, o.name, p.Where)
		}
	}
}

// clientStates counts clients by state. The state of a client is the worst of its types,
// and idle if all are. All states are there: an alert need not tell zero from absence.
func clientStates(list []push.ClientStatus) map[session.Phase]int {
	worst := []session.Phase{session.NACKed, session.Waiting, session.ACKed, session.Idle}
	counts := map[session.Phase]int{}
	for _, state := range worst {
		counts[state] = 0
	}
	for _, c := range list {
		at := len(worst)
		for _, t := range c.Types {
			at = min(at, slices.Index(worst, t.State))
		}
		counts[worst[min(at, len(worst)-1)]]++
	}
	return counts
}
