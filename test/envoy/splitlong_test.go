package envoy_test

import (
	"context"
	"fmt"
	"testing"
)

// TestSharesEndNoConnection keeps WebSockets, streams of HTTP/2 and connections of TCP open
// while the first share comes, shares leave the backends of the connections out, and the last
// share goes. Envoys replace the clusters twice, for another balancer, and the cluster of names
// at every change. Each connection carries lines to the end.
func TestSharesEndNoConnection(t *testing.T) {
	t.Parallel()
	d := divide(t)
	callers := map[string]*sharedCallers{}
	for _, w := range d.ways() {
		callers[w.name] = newSharedCallers(t, w)
		await(t, w.name+" to be answered", callers[w.name].isAnswered)
	}
	var open []*longCall
	openMore := func() {
		t.Helper()
		for _, way := range []struct {
			number uint32
			open   func(ctx context.Context, address, host string) (*longCall, error)
		}{{d.HTTP.Number, openUpgraded}, {d.HTTP2.Number, openStream}, {d.TCP.Number, openUpgraded}, {d.Named.Number, openUpgraded}, {d.edgeHTTP, openUpgraded}, {d.edgeTCP.Number, openUpgraded}} {
			host := sharedHost
			if way.number == d.Named.Number {
				host = namedHost
			}
			for range 4 {
				call, err := way.open(t.Context(), fmt.Sprint("127.0.0.1:", way.number), host)
				if err != nil {
					t.Fatalf("port %d: %v", way.number, err)
				}
				t.Cleanup(call.close)
				open = append(open, call)
			}
		}
	}
	mustBeAlive := func(when string) (by map[string]int) {
		t.Helper()
		by = map[string]int{}
		for _, call := range open {
			if err := call.Alive(); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			by[call.by]++
		}
		return by
	}
	awaitShare := func(percent float64, within float64) {
		t.Helper()
		for name, c := range callers {
			await(t, fmt.Sprintf("%g %% of %s", percent, name), func() error { return c.share(t, 200, percent, within) })
		}
	}
	openMore()
	for _, percent := range []int{50, 100, 0, 50} {
		d.Ask(percent)
		awaitShare(float64(percent), float64(min(percent, 2)))
		openMore()
		by := mustBeAlive(fmt.Sprintf("with %d %%", percent))
		if by["old"] < 20 || percent == 0 && by["new"] < 20 {
			t.Errorf("with %d %% only so many connections are open: %v", percent, by)
		}
	}
	d.Unite()
	awaitShare(0, 0)
	mustBeAlive("without shares")
	replaced, err := d.sidecar.Stats(t.Context(), `^cluster_manager\.cluster_modified$`)
	if n := replaced["cluster_manager.cluster_modified"]; err != nil || n < 2 {
		t.Errorf("the sidecar has replaced %d clusters (%v)", n, err)
	}
	figures.add(t, "%d connections stay open, while the sidecar replaces %d clusters", len(open), replaced["cluster_manager.cluster_modified"])
	d.MustBeSettled()
}
