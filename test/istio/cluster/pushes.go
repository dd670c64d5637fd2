package cluster

import (
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// Pushes are what an istiod has counted so far: responses to its clients by type,
// such as "eds", and what led to them, such as "for endpoint".
type Pushes map[string]int

// Pushes reads the counters.
func (i *Istiod) Pushes(tb testing.TB) Pushes {
	tb.Helper()
	counted := Pushes{}
	page := probe.Get("http://" + i.Monitoring + "/metrics")
	if page == nil {
		tb.Fatal("istiod does not tell its counters")
	}
	for series, n := range probe.ParseMetrics(tb, page) {
		for metric, prefix := range map[string]string{"pilot_xds_pushes": "", "pilot_push_triggers": "for "} {
			if word, found := strings.CutPrefix(series, metric+`{type="`); found {
				counted[prefix+strings.TrimSuffix(word, `"}`)] = int(n)
			}
		}
	}
	return counted
}

// Since is what was counted after something else was.
func (p Pushes) Since(before Pushes) Pushes {
	more := Pushes{}
	for what, n := range p {
		if n > before[what] {
			more[what] = n - before[what]
		}
	}
	return more
}
