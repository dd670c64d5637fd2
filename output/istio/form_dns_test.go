package istio

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// A service of which names are looked up from now on has no WorkloadEntries. They go as
// late as when a service leaves that form otherwise: an istiod may still select them.
func TestWorkloadsOutlastTheChangeToDNS(t *testing.T) {
	t.Parallel()
	const settle = 300 * time.Millisecond
	for _, n := range []int{3, 20} { // the latter is several objects inline
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			api, r := inFormWritten(t, translate.WorkloadEntries, n)
			moves := filmed(api)
			w := start(t, api, r, func(c *Config, o *Options) { c.Endpoints, c.ShardSize, o.settle = translate.WorkloadEntries, 3, settle })
			settled(t, w)
			looksUp, _ := shop.Service("sc", "a.example").(model.Upsert)
			spec, _ := looksUp.Record.Spec.(model.Service)
			spec.Resolution = model.ResolutionDNS
			looksUp.Record.Spec = spec
			r.say(looksUp)
			endsIn(t, api, w, translate.Inline, 0)
			all := moves.take()
			var swapped time.Time
			for i, m := range all {
				if len(m.served) != n {
					t.Errorf("after write %d of %d, served are %v", i+1, len(all), m.served)
				}
				if i > 0 && !m.selects && all[i-1].selects || i == 0 && !m.selects {
					swapped = m.at
				}
				if gap := m.at.Sub(swapped); m.workloads < n && gap < settle {
					t.Errorf("after write %d of %d, %s after the swap, there are %d WorkloadEntries", i+1, len(all), gap, m.workloads)
				}
			}
		})
	}
}
