package app

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/output/istio"
)

// shown is how the output stands, for the admin API.
func (o *istioOutput) shown() []admin.Writer {
	if o == nil {
		return nil
	}
	s, now := o.writer.Status(), time.Now()
	w := admin.Writer{
		Name: "istio", Leader: s.Leader, Objects: s.Objects, Pending: s.Pending, PendingAge: ageOf(now, s.Oldest),
		LastWrite: s.LastWrite, Drift: s.Drift,
		Writes: map[string]uint64{}, Failed: []admin.WriteFailure{}, Held: []admin.HeldObject{}, LeftOut: []admin.Omission{},
	}
	w.State, w.Reason = stateOf(s)
	if s.Trouble != "" {
		w.Age = ageOf(now, s.TroubleSince)
	}
	for _, verb := range []istio.Verb{istio.Create, istio.Update, istio.Delete} {
		w.Writes[string(verb)] = s.Writes[verb]
	}
	for _, f := range s.Failing {
		w.Failed = append(w.Failed, admin.WriteFailure{
			Object: f.Key.String(), Reason: f.Err.Error(), Tries: f.Tries, Since: f.Since, Age: ageOf(now, f.Since), Next: f.Next,
		})
	}
	for _, h := range s.Held {
		w.Held = append(w.Held, admin.HeldObject{Object: h.String(), Reason: h.Reason, Endpoints: h.Endpoints, Age: ageOf(now, h.Since)})
	}
	for _, omitted := range s.LeftOut {
		w.LeftOut = append(w.LeftOut, omissions(omitted)...)
	}
	return []admin.Writer{w}
}

func stateOf(s istio.Status) (state, reason string) {
	switch {
	case s.Trouble != "":
		return admin.WriterStale, s.Trouble + "; it is tried again, and what is there stays"
	case !s.Leading:
		return admin.WriterStandby, "another replica writes"
	case len(s.Waiting) > 0:
		return admin.WriterWaiting, "not known yet: " + strings.Join(s.Waiting, ", ")
	default:
		return admin.WriterWriting, ""
	}
}

func omissions(o istio.Omission) []admin.Omission {
	if o.Refused != "" {
		return []admin.Omission{{Object: o.String(), Reason: o.Refused}}
	}
	var list []admin.Omission
	for _, l := range o.LeftOut {
		list = append(list, admin.Omission{Object: o.String(), Reason: l.Reason, Count: l.Count})
	}
	return list
}

func ageOf(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return max(now.Sub(then), 0).Round(time.Millisecond).String()
}

// istioCollector makes metrics of what the writer knows at the time of a scrape.
type istioCollector struct{ writer *istio.Writer }

// istioMetric is one metric of the writer.
type istioMetric struct {
	name, help string
	kind       prometheus.ValueType
	value      func(s istio.Status, now time.Time) float64
}

func istioMetrics() []istioMetric {
	return []istioMetric{
		{"leader", "Whether this replica writes.", prometheus.GaugeValue, func(s istio.Status, _ time.Time) float64 { return truth(s.Leading) }},
		{"up", "Whether the API server can be followed.", prometheus.GaugeValue, func(s istio.Status, _ time.Time) float64 { return truth(s.Trouble == "") }},
		{"objects", "Objects of this Isthmus in the API server.", prometheus.GaugeValue, func(s istio.Status, _ time.Time) float64 { return float64(s.Objects) }},
		{"pending", "Services and scopes that are not known to be written as they should be.", prometheus.GaugeValue, func(s istio.Status, _ time.Time) float64 { return float64(s.Pending) }},
		{"pending_oldest_seconds", "How long the first of them has waited.", prometheus.GaugeValue, func(s istio.Status, now time.Time) float64 {
			if s.Oldest.IsZero() {
				return 0
			}
			return now.Sub(s.Oldest).Seconds()
		}},
		{"failing", "Services and scopes that could not be written.", prometheus.GaugeValue, func(s istio.Status, _ time.Time) float64 { return float64(len(s.Failing)) }},
		{"held", "Objects left as they are until their source has been listed and is believed.", prometheus.GaugeValue, func(s istio.Status, _ time.Time) float64 { return float64(len(s.Held)) }},
		{"failures_total", "Writes that failed.", prometheus.CounterValue, func(s istio.Status, _ time.Time) float64 { return float64(s.Failures) }},
		{"drift_total", "Objects that were restored after others had changed or deleted them.", prometheus.CounterValue, func(s istio.Status, _ time.Time) float64 { return float64(s.Drift) }},
		{"left_out_endpoints", "Endpoints that cannot be written.", prometheus.GaugeValue, leftOut},
	}
}

func leftOut(s istio.Status, _ time.Time) float64 {
	n := 0
	for _, o := range s.LeftOut {
		for _, l := range o.LeftOut {
			n += l.Count
		}
	}
	return float64(n)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m istioMetric) desc() *prometheus.Desc {
	return prometheus.NewDesc("isthmus_istio_"+m.name, m.help, nil, nil)
}

func istioWrites() *prometheus.Desc {
	return prometheus.NewDesc("isthmus_istio_writes_total", "Objects written.", []string{"verb"}, nil)
}

// Describe implements [prometheus.Collector].
func (c *istioCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range istioMetrics() {
		ch <- m.desc()
	}
	ch <- istioWrites()
}

// Collect implements [prometheus.Collector].
func (c *istioCollector) Collect(ch chan<- prometheus.Metric) {
	s, now := c.writer.Status(), time.Now()
	for _, m := range istioMetrics() {
		ch <- prometheus.MustNewConstMetric(m.desc(), m.kind, m.value(s, now))
	}
	for _, verb := range []istio.Verb{istio.Create, istio.Update, istio.Delete} {
		ch <- prometheus.MustNewConstMetric(istioWrites(), prometheus.CounterValue, float64(s.Writes[verb]), string(verb))
	}
}
