package output

import (
	"iter"
	"time"

	"github.com/isthmus-mesh/isthmus/push"
)

// Streams are the metrics of what a server of streams turned away or slowed down, each
// by its causes.
func Streams(listener string, server interface {
	Rejected() iter.Seq2[string, uint64]
	Delayed() iter.Seq2[string, uint64]
},
) (list []Metric) {
	count := func(name, help string, counts iter.Seq2[string, uint64]) {
		for cause, n := range counts {
			list = append(list, Metric{
				Name: name, Help: help, Counter: true, Value: float64(n),
				Labels: []Label{{Name: "output", Value: listener}, {Name: "cause", Value: cause}},
			})
		}
	}
	count("isthmus_streams_rejected_total", "Streams and connections that were not served, or not any longer.", server.Rejected())
	count("isthmus_requests_delayed_total", "Requests that had to wait because their stream sends too many.", server.Delayed())
	return list
}

// Observing is what an engine calls where it only matters how long something took.
func Observing(observe func(time.Duration)) func(push.Type, time.Duration) {
	return func(_ push.Type, took time.Duration) { observe(took) }
}
