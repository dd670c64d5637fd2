package istio

import (
	"fmt"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
)

// Report implements [output.Output].
func (o opened) Report() output.Report {
	s, now := o.Status(), time.Now()
	return output.Report{Writer: shape(s, now), Metrics: measure(s, now)}
}

// shape returns the status as the admin API shows it.
func shape(s Status, now time.Time) *output.Writer {
	w := &output.Writer{
		Name: "istio", Leader: s.Leader, Objects: s.Objects, Pending: s.Pending, PendingAge: ageOf(now, s.Oldest),
		LastWrite: s.LastWrite, Drift: s.Drift,
		Writes: map[string]uint64{}, Failed: []output.WriteFailure{}, Held: []output.HeldObject{}, LeftOut: []output.Omission{},
	}
	w.State, w.Reason, w.Since = stateOf(s)
	w.Age = ageOf(now, w.Since)
	w.Throttled, w.ThrottledAge, w.ThrottledReason = throttled(s), ageOf(now, s.ThrottledSince), whyThrottled(s)
	for _, verb := range writes() {
		w.Writes[string(verb)] = s.Writes[verb]
	}
	for _, f := range s.Failing {
		w.Failed = append(w.Failed, output.WriteFailure{
			Object: f.Key.String(), Reason: f.Err.Error(), Tries: f.Tries, Since: f.Since, Age: ageOf(now, f.Since), Next: f.Next,
		})
	}
	for _, h := range s.Held {
		w.Held = append(w.Held, output.HeldObject{Object: h.String(), Reason: h.Reason, Endpoints: h.Endpoints, Age: ageOf(now, h.Since)})
	}
	for _, omitted := range s.LeftOut {
		w.LeftOut = append(w.LeftOut, omissions(omitted)...)
	}
	return w
}

// writes returns the verbs that write.
func writes() []plan.Verb { return []plan.Verb{plan.Create, plan.Update, plan.Delete} }

// stateOf returns the state of a writer, its reason, and since when the reason holds.
func stateOf(s Status) (state, reason string, since time.Time) {
	switch {
	case s.Trouble != "":
		return output.WriterStale, s.Trouble + "; retried, and existing objects are kept", s.TroubleSince
	case !s.Leading && s.Lease != "":
		return output.WriterWaiting, s.Lease + "; retried, and existing objects are kept", s.LeaseSince
	case !s.Leading:
		return output.WriterStandby, "another replica writes", time.Time{}
	case len(s.Waiting) > 0:
		return output.WriterWaiting, "not known yet: " + strings.Join(s.Waiting, ", "), s.WaitingSince
	case s.Lease != "":
		return output.WriterWriting, s.Lease, s.LeaseSince
	default:
		return output.WriterWriting, "", time.Time{}
	}
}

// throttled counts the keys that wait because of the configured rate.
func throttled(s Status) (n int) {
	for _, count := range s.Throttled {
		n += count
	}
	return n
}

// whyThrottled returns why keys wait, and their order.
func whyThrottled(s Status) string {
	n := throttled(s)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("more writes wait than outputs.istio.qps: %v allows; removals come first (%d), then additions (%d)",
		s.Rate, s.Throttled[controller.MostUrgent], s.Throttled[controller.Urgent])
}

func omissions(o write.Omission) []output.Omission {
	if o.Invalid != "" {
		return []output.Omission{{Object: o.String(), Reason: o.Invalid}}
	}
	var list []output.Omission
	for _, l := range o.LeftOut {
		list = append(list, output.Omission{Object: o.String(), Reason: l.Reason, Count: l.Count})
	}
	return list
}

func ageOf(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return max(now.Sub(then), 0).Round(time.Millisecond).String()
}

// measure lists the metrics of a status.
func measure(s Status, now time.Time) []output.Metric {
	gauge := func(name, help string, value float64) output.Metric {
		return output.Metric{Name: "isthmus_istio_" + name, Help: help, Value: value}
	}
	counter := func(name, help string, value uint64, labels ...output.Label) output.Metric {
		return output.Metric{Name: "isthmus_istio_" + name, Help: help, Counter: true, Labels: labels, Value: float64(value)}
	}
	seconds := func(since time.Time) float64 {
		if since.IsZero() {
			return 0
		}
		return now.Sub(since).Seconds()
	}
	list := []output.Metric{
		gauge("leader", "Whether this replica writes.", truth(s.Leading)),
		gauge("up", "Whether the API server can be watched, and the lease be read and renewed.", truth(s.Trouble == "" && s.Lease == "")),
		gauge("objects", "Objects of this Isthmus in the API server.", float64(s.Objects)),
		gauge("pending", "Services and scopes that are not known to be up to date in the API server.", float64(s.Pending)),
		gauge("pending_oldest_seconds", "How long the oldest pending service or scope has waited, in seconds.", seconds(s.Oldest)),
		gauge("throttled", "Services and scopes that wait because of outputs.istio.qps.", float64(throttled(s))),
		gauge("throttled_oldest_seconds", "How long the oldest throttled service or scope has waited, in seconds.", seconds(s.ThrottledSince)),
		gauge("failing", "Services and scopes with a failed write, or with one that hangs.", float64(len(s.Failing))),
		gauge("held", "Objects that are not deleted or reduced until their source has been listed and confirmed.", float64(len(s.Held))),
		gauge("left_out_endpoints", "Endpoints that Istio's API cannot represent.", float64(leftOut(s))),
		counter("failures_total", "Writes that failed.", s.Failures),
		counter("drift_total", "Objects restored after another writer had changed or deleted them.", s.Drift),
	}
	for _, verb := range writes() {
		list = append(list, counter("writes_total", "Objects written.", s.Writes[verb], output.Label{Name: "verb", Value: string(verb)}))
	}
	return list
}

func leftOut(s Status) (n int) {
	for _, o := range s.LeftOut {
		for _, l := range o.LeftOut {
			n += l.Count
		}
	}
	return n
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
