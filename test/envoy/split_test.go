package envoy_test

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestCallsAreSharedAsAsked has a registry's share of the calls to a host go up in steps,
// and back. Its backends are more, heavier, and in another region than the Envoy; the others
// are near. Each step is a change of the configuration, and no call fails.
func TestCallsAreSharedAsAsked(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		m.Others = newFolder(t)
		m.Envoy = "defaults: {outlierDetection: {consecutive5xxErrors: 100}}" // with which near endpoints come first
		m.Hold = "share: 1"
		number := freePort(t)
		const host = "shared.example.com"
		write := func(f *folder, backends []*backend, locality string, weight int) {
			s := service{Spec: serviceSpec{Hosts: []string{host}, Resolution: "STATIC", Ports: []port{{Number: number, Name: "main", Protocol: "HTTP"}}}}
			for i, b := range backends {
				e := b.endpoint("main")
				e.Locality, e.Weight = locality, uint32(weight*(i+1)) //nolint:gosec // a few
				s.Spec.Endpoints = append(s.Spec.Endpoints, e)
			}
			f.write(t, "shared", s)
		}
		old := []*backend{startBackend(t, "old", "old-1"), startBackend(t, "old", "old-2")}
		var next []*backend
		for i := range 5 {
			next = append(next, startBackend(t, "new", fmt.Sprint("new-", i)))
		}
		write(m.Folder, old, "eu/a", 1)
		write(m.Others, next, "us/b", 20)
		m.Sources = "# splits"
		i := m.Serve("")
		m.connectWith(proxy.Config{Delta: delta, Listeners: true, Flags: []string{"--locality", "eu/a"}})
		await(t, "the service to answer", func() error { return answers(t.Context(), number, host, "old") })
		current := m.Sources
		ask := func(splits string) {
			i.Configure(current, splits)
			current = splits
		}
		split := func(old, next int) string {
			return fmt.Sprintf("splits: [{host: %s, namespace: shop, backends: [{source: files, weight: %d}, {source: others, weight: %d}]}]", host, old, next)
		}
		caller := &http.Transport{MaxIdleConnsPerHost: sharers}
		defer caller.CloseIdleConnections()
		for _, percent := range []int{0, 1, 50, 98, 100, 10} {
			ask(split(100-percent, percent))
			within := min(2, float64(min(percent, 100-percent))/2) // half of the smaller share, and nothing of a share of 0
			await(t, fmt.Sprintf("%d %% of the calls to be answered by the new backends", percent), func() error {
				return shareOf(t, caller, number, host, 200, float64(percent), within)
			})
			if err := shareOf(t, caller, number, host, 1000, float64(percent), within); err != nil {
				t.Error(err)
			}
		}
		ask("# splits")
		await(t, "the near backends alone to answer", func() error { return shareOf(t, caller, number, host, 200, 0, 0) })
		m.MustBeSettled()
	})
}

// sharers is how many calls are made at a time.
const sharers = 10

// shareOf makes calls, all of which must be answered, and returns an error unless about so
// many percent are answered by new backends.
func shareOf(t *testing.T, caller *http.Transport, number uint32, host string, calls int, percent, within float64) error {
	t.Helper()
	var n atomic.Int64
	var all sync.WaitGroup
	for range sharers {
		all.Go(func() {
			for range calls / sharers {
				by, err := callHostOver(t.Context(), caller, number, host)
				if err != nil {
					t.Errorf("a call failed: %v", err)
				}
				if by == "new" {
					n.Add(1)
				}
			}
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	if got := 100 * float64(n.Load()) / float64(calls); math.Abs(got-percent) > within {
		return fmt.Errorf("%.1f %% of %d calls are answered by new backends, want %g", got, calls, percent)
	}
	return nil
}
