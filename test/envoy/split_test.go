package envoy_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// The hosts whose calls are divided have the same backends. Envoys resolve those of namedHost as
// names. The edge alone sees bareHost, for a sidecar would listen on its port, too.
const sharedHost, namedHost, bareHost = "shared.example.com", "named.example.com", "bare.example.com"

// gateways is the namespace of the edge.
const gateways = "gateways"

// divided is a mesh with hosts that two registries have. The backends of the second registry
// are more, heavier, and in another region than the Envoys; the others are near.
type divided struct {
	*mesh
	HTTP, HTTP2, TCP, Named port   // at the sidecar
	edgeHTTP                uint32 // at the edge
	edgeTCP                 port   // of bareHost, and at the edge
	old, next               []*backend
	sidecar, endpoints      *proxy.Proxy
	asked                   string // in the configuration
}

// divide makes the mesh, with three Envoys: a sidecar, an edge of two workers, and one of four
// workers that takes nothing but clusters and endpoints. The edge takes all of its state at a
// time, the others take changes.
func divide(t *testing.T) *divided {
	t.Helper()
	d := &divided{mesh: newMesh(t), asked: "# splits", edgeHTTP: freePort(t)}
	d.HTTP = port{Number: freePort(t), Name: "http", Protocol: "HTTP"}
	d.HTTP2 = port{Number: freePort(t), Name: "http2", Protocol: "HTTP2"}
	d.TCP = port{Number: freePort(t), Name: "tcp", Protocol: "TCP"}
	d.Named = port{Number: freePort(t), Name: "named", Protocol: "HTTP"}
	d.edgeTCP = port{Number: freePort(t), Name: "bare", Protocol: "TCP"}
	d.Others, d.Hold, d.Sources = newFolder(t), "share: 1", d.asked
	d.Envoy = fmt.Sprintf(`edge: {ports: [{number: %d, hosts: [%s], localAddresses: allow}, {number: %d, protocol: TCP, hosts: [%s], localAddresses: allow}]},
    defaults: {outlierDetection: {consecutive5xxErrors: 100}}`, d.edgeHTTP, sharedHost, d.edgeTCP.Number, bareHost) // with which near endpoints come first
	for n := range 2 {
		d.old = append(d.old, startBackend(t, "old", fmt.Sprint("old-", n)))
	}
	for n := range 5 {
		d.next = append(d.next, startBackend(t, "new", fmt.Sprint("new-", n)))
	}
	d.publish()
	d.Serve("")
	near := []string{"--locality", "eu/a"}
	d.sidecar = d.connectWith(proxy.Config{Delta: true, Workload: "sidecar", Listeners: true, Flags: near})
	d.connectWith(proxy.Config{Workload: "edge", Namespace: gateways, Workers: 2, Flags: near})
	d.endpoints = d.connectWith(proxy.Config{Delta: true, Workload: "endpoints", Workers: 4, ClustersOnly: true, Flags: near})
	return d
}

// publish writes the services of the registries.
func (d *divided) publish() {
	d.Helper()
	d.write(d.Folder, d.old, "eu/a", 1)
	d.write(d.Others, d.next, "us/b", 20)
}

func (d *divided) write(f *folder, backends []*backend, locality string, weight int) {
	d.Helper()
	static := service{Spec: serviceSpec{Hosts: []string{sharedHost}, Resolution: "STATIC", Ports: []port{d.HTTP, d.HTTP2, d.TCP}}}
	names := service{Spec: serviceSpec{Hosts: []string{namedHost}, Resolution: "DNS", Ports: []port{d.Named}}}
	bare := service{Spec: serviceSpec{Hosts: []string{bareHost}, Resolution: "STATIC", Ports: []port{d.edgeTCP}, ExportTo: []string{gateways}}}
	for i, b := range backends {
		e := endpoint{Address: b.Address, Locality: locality, Weight: uint32(weight * (i + 1))} //nolint:gosec // a few
		e.Ports = map[string]uint32{"http": b.Port, "http2": b.Port, "tcp": b.Port}
		static.Spec.Endpoints = append(static.Spec.Endpoints, e)
		e.Ports = map[string]uint32{"named": b.Port}
		names.Spec.Endpoints = append(names.Spec.Endpoints, e)
		e.Ports = map[string]uint32{"bare": b.Port}
		bare.Spec.Endpoints = append(bare.Spec.Endpoints, e)
	}
	f.write(d, "shared", static, names, bare)
}

// Ask has the new backends get so many percent of the calls.
func (d *divided) Ask(percent int) {
	d.Helper()
	of := fmt.Sprintf("namespace: shop, backends: [{source: files, weight: %d}, {source: others, weight: %d}]", 100-percent, percent)
	d.configure(fmt.Sprintf("splits: [{host: %s, %s}, {host: %s, %[2]s}, {host: %[4]s, %[2]s}]", sharedHost, of, namedHost, bareHost))
}

// Unite removes the shares.
func (d *divided) Unite() {
	d.Helper()
	d.configure("# splits")
}

func (d *divided) configure(splits string) {
	d.Isthmuses[0].Configure(d.asked, splits)
	d.asked = splits
}

// sharedWay is a way to call one of the hosts.
type sharedWay struct {
	name string
	// open returns a function that makes a call, and returns the service that answers it. Each
	// caller has a function of its own.
	open func(*testing.T) func(context.Context) (by string, err error)
}

// ways returns every way to the hosts.
func (d *divided) ways() []sharedWay {
	requests := func(number uint32, host string) func(*testing.T) func(context.Context) (string, error) {
		return func(t *testing.T) func(context.Context) (string, error) {
			t.Helper()
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			return func(ctx context.Context) (string, error) { return callHostOver(ctx, transport, number, host) }
		}
	}
	connections := func(number uint32) func(*testing.T) func(context.Context) (string, error) {
		return func(*testing.T) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) { return callHost(ctx, number, sharedHost) }
		}
	}
	streams := []*http.Transport{overHTTP2(), overHTTP2()} // all callers share two connections
	for _, s := range streams {
		d.Cleanup(s.CloseIdleConnections)
	}
	var callers atomic.Int64
	return []sharedWay{
		{"HTTP/1.1 through a sidecar", requests(d.HTTP.Number, sharedHost)},
		{"HTTP/2 through a sidecar, two connections", func(*testing.T) func(context.Context) (string, error) {
			over := streams[int(callers.Add(1))%len(streams)]
			return func(ctx context.Context) (string, error) { return callHostOver(ctx, over, d.HTTP2.Number, sharedHost) }
		}},
		{"TCP through a sidecar", connections(d.TCP.Number)},
		{"names through a sidecar", requests(d.Named.Number, namedHost)},
		{"HTTP/1.1 through an edge of two workers", requests(d.edgeHTTP, sharedHost)},
		{"TCP through an edge of two workers", connections(d.edgeTCP.Number)},
		{"HTTP/1.1 through four workers with endpoints alone", func(t *testing.T) func(context.Context) (string, error) {
			t.Helper()
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			return func(ctx context.Context) (string, error) {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.endpoints.Address+"/", http.NoBody)
				if err != nil {
					return "", err
				}
				request.Header.Set("x-cluster", clusterName(sharedHost, d.HTTP.Number))
				return callOver(transport, request)
			}
		}},
	}
}

// TestCallsAreSharedAsAsked has a registry's share of the calls to hosts go up in steps, and
// back, each of them a change of the configuration. Every kind of call has the shares, through
// every kind of Envoy, and no call fails. A worker gives backends their turns for itself, and
// begins anew at each change, so there are enough calls for the smallest share at each of four.
func TestCallsAreSharedAsAsked(t *testing.T) {
	t.Parallel()
	d := divide(t)
	var callers []*sharedCallers
	for _, w := range d.ways() {
		c := newSharedCallers(t, w)
		await(t, w.name+" to be answered", c.isAnswered)
		callers = append(callers, c)
	}
	for _, step := range []struct{ percent, calls int }{{0, 200}, {1, 3000}, {50, 3000}, {98, 3000}, {100, 200}, {10, 3000}} {
		d.Ask(step.percent)
		var all sync.WaitGroup
		for _, c := range callers {
			all.Go(func() { c.mustGet(t, step.percent, step.calls) })
		}
		if all.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	off := 0.0
	for _, c := range callers {
		off = max(off, c.off)
	}
	figures.add(t, "shares of 3,000 calls are off by %.2f points at most", off)
	d.Unite()
	for _, c := range callers {
		await(t, "the near backends alone to answer "+c.name, func() error { return c.share(t, 200, 0, 0) })
	}
	d.MustBeSettled()
}

// sharers is how many calls are made at a time.
const sharers = 10

// sharedCallers are callers on one way.
type sharedCallers struct {
	name string
	call []func(context.Context) (string, error)
	ctx  context.Context
	off  float64 // the most points by which a measured share was off

	// Others call beside them and are not counted. They take turns in between, so the counted calls
	// are as good as drawn.
	beside bool
}

func newSharedCallers(t *testing.T, w sharedWay) *sharedCallers {
	t.Helper()
	c := &sharedCallers{name: w.name, ctx: t.Context()}
	for range sharers {
		c.call = append(c.call, w.open(t))
	}
	return c
}

func (c *sharedCallers) isAnswered() error {
	_, err := c.call[0](c.ctx)
	return err
}

// mustGet awaits that the new backends answer so many percent of the calls, and then requires it.
func (c *sharedCallers) mustGet(t *testing.T, percent, calls int) {
	t.Helper()
	await(t, fmt.Sprintf("%d %% of %s to be answered by the new backends", percent, c.name), func() error {
		return c.share(t, 200, float64(percent), c.within(percent, 200))
	})
	got := c.percent(t, calls)
	if c.off = max(c.off, math.Abs(got-float64(percent))); math.Abs(got-float64(percent)) > c.within(percent, calls) {
		t.Errorf("%s: %.2f %% of %d calls are answered by new backends, want %d", c.name, got, calls, percent)
	}
}

// within returns by how many points a share of so many calls may be off: by 2 and by half of the
// smaller share if every call is counted, otherwise also by four standard deviations. A share of 0
// is exact.
func (c *sharedCallers) within(percent, calls int) float64 {
	smaller := float64(min(percent, 100-percent))
	within := min(2, smaller/2)
	if c.beside {
		within = max(within, 4*math.Sqrt(smaller*(100-smaller)/float64(calls)))
	}
	return within
}

// share makes calls, and returns an error unless about so many percent are answered by new
// backends.
func (c *sharedCallers) share(t *testing.T, calls int, percent, within float64) error {
	t.Helper()
	if got := c.percent(t, calls); math.Abs(got-percent) > within {
		return fmt.Errorf("%s: %.2f %% of %d calls are answered by new backends, want %g", c.name, got, calls, percent)
	}
	return nil
}

// percent makes calls, all of which must be answered, and returns how many percent new backends
// answer.
func (c *sharedCallers) percent(t *testing.T, calls int) float64 {
	t.Helper()
	var n atomic.Int64
	var all sync.WaitGroup
	for _, call := range c.call {
		all.Go(func() {
			for range calls / sharers {
				by, err := call(c.ctx)
				if err != nil {
					t.Errorf("a call of %s failed: %v", c.name, err)
					return
				}
				if by == "new" {
					n.Add(1)
				}
			}
		})
	}
	all.Wait()
	return 100 * float64(n.Load()) / float64(calls)
}
