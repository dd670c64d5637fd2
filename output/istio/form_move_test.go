package istio

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
)

// moment is what was served after a write, and what there was.
type moment struct {
	at        time.Time
	served    map[string]int
	selects   bool
	workloads int
}

// film is every moment of an API server.
type film struct {
	mu      sync.Mutex
	moments []moment
}

func filmed(api *kubeapi.Server) *film {
	f := &film{}
	api.After(func(objects map[string]kubeapi.Object) {
		f.mu.Lock()
		defer f.mu.Unlock()
		now := moment{at: time.Now(), served: served(objects)}
		for path, o := range objects {
			if strings.HasPrefix(path, workloads) {
				now.workloads++
			} else if spec, _ := o["spec"].(kubeapi.Object); spec["workloadSelector"] != nil {
				now.selects = true
			}
		}
		f.moments = append(f.moments, now)
	})
	return f
}

// take returns what happened since it was called last.
func (f *film) take() []moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.moments
	f.moments = nil
	return all
}

// everybody is that each of n endpoints is served at every moment.
func everybody(t *rapid.T, moments []moment, n int) {
	for i, m := range moments {
		for e := range n {
			if m.served[fmt.Sprintf("10.0.0.%d", e)] == 0 {
				t.Fatalf("after write %d of %d, 10.0.0.%d is not served, but %v", i+1, len(moments), e, m.served)
			}
		}
	}
}

// apart is that a swap of the ServiceEntry and the writes of WorkloadEntries that it
// depends on are so long apart that it does not matter which of them a reader sees first.
func apart(t *rapid.T, moments []moment, long time.Duration) {
	for i := 1; i < len(moments); i++ {
		if moments[i].selects == moments[i-1].selects {
			continue
		}
		for _, other := range []int{i - 1, i + 1} {
			lacks := other > 0 && other < len(moments) && moments[other].workloads != moments[other-1].workloads
			if gap := moments[max(i, other)%len(moments)].at.Sub(moments[min(i, other)].at); lacks && gap < long {
				t.Fatalf("the ServiceEntry was swapped within %s of a write of a WorkloadEntry", gap)
			}
		}
	}
}

// Whatever a service is written as when a writer begins, it comes to the form of
// the configuration, and after no write of that is anybody absent. So it is whatever is
// rejected for a while, and if the writer is stopped on the way and the next one has the
// other form for its aim.
func TestNobodyIsAbsentWhileTheFormChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		api := kubeapi.New()
		defer api.Close()
		r, n, partial := newRegistry("sc"), rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8, 20}).Draw(rt, "endpoints"), rapid.IntRange(0, 2).Draw(rt, "partial")
		r.say(fleetSays(n)...)
		for i := range min(partial, n) { // these serve one of the ports only
			r.say(own("a.example", fmt.Sprintf("10.0.0.%d", i), map[string]uint32{"http": 80}))
		}
		r.listed("sc")
		forms, at := []translate.Form{translate.Inline, translate.WorkloadEntries}, rapid.IntRange(0, 1).Draw(rt, "from")
		const settle = 20 * time.Millisecond
		moves := filmed(api)
		for step := range 3 {
			odd := rapid.IntRange(0, 5).Draw(rt, "rejected are") // from 3 on, none
			api.Reject(func(verb, path string) *kubeapi.Rejection {
				if verb == http.MethodGet || int(path[len(path)-1])%3 != odd {
					return nil
				}
				return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "not this one"}
			})
			form := forms[at%2]
			w := start(t, api, r, func(c *Config, o *Options) { c.Endpoints, c.ShardSize, o.settle = form, 3, settle })
			if step > 0 {
				await(t, "what can be written", func() error {
					if s := w.Status(); s.Pending > len(s.Failing) || len(s.Waiting) > 0 || !s.Leading {
						return fmt.Errorf("%+v", s)
					}
					return nil
				})
			}
			api.Reject(nil)
			if writes := rapid.IntRange(-5, 40).Draw(rt, "writes before it is stopped"); step > 0 && writes > 0 {
				w.awaitWrites(t, uint64(writes))
			} else {
				endsIn(t, api, w, form, n-min(partial, n))
			}
			w.stop()
			moments := moves.take()
			if step > 0 {
				everybody(rt, moments, n)
				apart(rt, moments, settle)
			}
			at++
		}
	})
}

// awaitWrites waits until a writer has written so often, or has nothing to write.
func (w *running) awaitWrites(t *testing.T, n uint64) {
	t.Helper()
	await(t, "writes", func() error {
		s := w.Status()
		if done := s.Writes[plan.Create] + s.Writes[plan.Update] + s.Writes[plan.Delete]; done < n && (s.Pending > 0 || len(s.Waiting) > 0 || !s.Leading) {
			return fmt.Errorf("there were %d", done)
		}
		return nil
	})
}

// endsIn waits until the objects are those of a form, and no others, each endpoint
// served once.
func endsIn(t *testing.T, api *kubeapi.Server, w *running, form translate.Form, selected int) {
	t.Helper()
	await(t, "the form to be "+string(form), func() error {
		all := api.Everything()
		paths := slices.Sorted(maps.Keys(all))
		objects := len(slices.DeleteFunc(paths, func(path string) bool { return !strings.HasPrefix(path, workloads) }))
		want := 0
		if form == translate.WorkloadEntries {
			want = selected
		}
		for address, times := range served(all) {
			if times != 1 {
				return fmt.Errorf("%s is served %d times", address, times)
			}
		}
		if first := spec(api, "a.example"); (first["workloadSelector"] != nil) != (form == translate.WorkloadEntries) {
			return fmt.Errorf("it is %v; failing: %v", first, w.Status().Failing)
		}
		if objects != want {
			return fmt.Errorf("there are %d WorkloadEntries, want %d; failing: %v", objects, want, w.Status().Failing)
		}
		return nil
	})
	settled(t, w)
}
