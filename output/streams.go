package output

import (
	"iter"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// Streams returns the metrics of a server of streams: the streams that it rejected and the
// requests that it delayed, each by cause, and the streams that wait until Isthmus is ready.
func Streams(listener string, server interface {
	Rejected() iter.Seq2[string, uint64]
	Delayed() iter.Seq2[string, uint64]
	Waiting() int
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
	return append(list, Metric{
		Name: "isthmus_streams_waiting", Help: "Streams that wait until Isthmus is ready.", Value: float64(server.Waiting()),
		Labels: []Label{{Name: "output", Value: listener}},
	})
}

// Observing is what an engine calls where it only matters how long something took.
func Observing(observe func(time.Duration)) func(world.Type, time.Duration) {
	return func(_ world.Type, took time.Duration) { observe(took) }
}
