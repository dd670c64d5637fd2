package xds_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
)

const half = 30 << 20 // what a request says it has, and never sends all of

// beginLarge begins large requests on streams of one connection, and sends as much
// of each as the server takes.
func beginLarge(t *testing.T, r *rig, streams int) wired {
	t.Helper()
	conn := r.wired(t)
	go func() {
		for i := range streams {
			n := uint32(2*i + 1)
			conn.send(append(opening(n, adsDelta), saying(n, half, make([]byte, 1000))...))
		}
	}()
	return conn
}

// A request that is begun and does not come ends its stream, also a small one, the
// first or a later one.
func TestRequestThatDoesNotComeEndsItsStream(t *testing.T) {
	whole := marshalled(t, &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
	for name, length := range map[string]int{"small": 100, "large": half} {
		for _, first := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				timed(t, setup{}, func(t *testing.T, r *rig) {
					conn := r.wired(t)
					conn.send(opening(1, adsDelta))
					if !first {
						conn.send(saying(1, len(whole), whole))
						synctest.Wait()
						if n := r.engine.Len(); n != 1 {
							t.Errorf("%d clients are there", n)
						}
					}
					conn.send(saying(1, length, make([]byte, 10)))
					time.Sleep(9 * time.Second)
					if n := r.rejectedFor("stalled"); n != 0 {
						t.Error("it ended too early")
					}
					time.Sleep(2 * time.Second)
					if n := r.rejectedFor("stalled"); n != 1 {
						t.Errorf("%d streams ended for it", n)
					}
					synctest.Wait()
					if n := r.engine.Len(); n != 0 || conn.closed() {
						t.Errorf("%d clients are there, and the connection is closed: %t", n, conn.closed())
					}
				})
			})
		}
	}
}

// A slow client that goes on sending is served.
func TestSlowRequestIsTaken(t *testing.T) {
	var names []string
	for _, name := range numbered(20_000) {
		names = append(names, strings.Repeat("x", 100)+name)
	}
	whole := marshalled(t, &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: append(names, clusterOf(probe))})
	if len(whole) < 3<<20 {
		t.Fatalf("it has %d bytes", len(whole))
	}
	timed(t, setup{}, func(t *testing.T, r *rig) {
		conn := r.wired(t)
		conn.send(append(opening(1, adsDelta), saying(1, len(whole), nil)...))
		const frame = 16 << 10
		parts := slices.Collect(slices.Chunk(whole, frame))
		pause := 25 * time.Second / time.Duration(len(parts))
		for _, part := range parts {
			time.Sleep(pause)
			conn.send(http2Frame(frameData, 0, 1, part))
		}
		synctest.Wait()
		if n := r.engine.Len(); n != 1 {
			t.Errorf("%d clients are there", n)
		}
	})
}

// Large requests on their way in wait for room of their client, which others need
// not, and take no more of what there is for all.
func TestLargeRequestsOnTheirWayAreBounded(t *testing.T) {
	var at places
	at.are("192.0.2.1")
	timed(t, setup{from: at.from, limits: xds.Limits{Limits: streams.Limits{Message: half, Receiving: 2 * half}}}, func(t *testing.T, r *rig) {
		conn := beginLarge(t, r, 20)
		synctest.Wait()
		if n := conn.granted.Load(); n < 1<<20 || n > 2<<20 {
			t.Errorf("the server lets it send %d bytes more, of %d", n, 20*half)
		}
		at.are("192.0.2.2")
		names := numbered(20_000)
		s := openRaw(t, r.dial(), adsDelta)
		begin := time.Now()
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: append(names, clusterOf(probe))})
		s.delta()
		if took := time.Since(begin); took != 0 {
			t.Errorf("another client's large request was taken after %s", took)
		}
		at.are("192.0.2.1")
		if took := answeredAfter(t, r); took != 0 {
			t.Errorf("a small request of the same client was taken after %s", took)
		}
		time.Sleep(21 * time.Second)
		if stalled, size := r.rejectedFor("stalled"), r.rejectedFor("size"); stalled+size != 20 || stalled == 0 {
			t.Errorf("%d were begun and did not come, %d found no room", stalled, size)
		}
	})
}

// A client that goes while its requests wait for room was not rejected.
func TestRequestOfAClientThatGoesIsNotRejected(t *testing.T) {
	timed(t, setup{limits: xds.Limits{Limits: streams.Limits{Message: half, Receiving: 2 * half}}}, func(t *testing.T, r *rig) {
		conn := beginLarge(t, r, 20)
		synctest.Wait()
		_ = conn.Close()
		time.Sleep(time.Minute)
		if stalled, size := r.rejectedFor("stalled"), r.rejectedFor("size"); stalled+size != 0 {
			t.Errorf("%d streams were rejected since something did not come, and %d for their size", stalled, size)
		}
	})
}
