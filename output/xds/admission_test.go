package xds_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
)

// answeredAfter opens a stream on a new connection and returns when it was answered.
func answeredAfter(t *testing.T, r *rig) time.Duration {
	t.Helper()
	begin := time.Now()
	s := openRaw(t, r.dial(), adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
	s.delta()
	return time.Since(begin)
}

// One client opens streams as fast as it can, resets them at once or keeps them. It
// waits for itself: others are let in without delay.
func TestClientThatOpensManyStreamsDelaysItselfAlone(t *testing.T) {
	for name, reset := range map[string]bool{"kept": false, "reset": true} {
		t.Run(name, func(t *testing.T) {
			var at places
			at.are("192.0.2.1")
			timed(t, setup{from: at.from, limits: xds.Limits{Limits: streams.Limits{NewStreams: streams.Rate{PerSecond: 20, Burst: 40}}}}, func(t *testing.T, r *rig) {
				var streams []byte // sent at once, so that all of a connection are counted before it waits
				for n := uint32(1); n < 100; n += 2 {
					streams = append(streams, opening(n, adsDelta)...)
					if reset {
						streams = append(streams, resetting(n)...)
					}
				}
				for range 3 {
					flood := r.wired(t)
					go flood.send(streams)
				}
				synctest.Wait()
				time.Sleep(time.Second)
				at.are("192.0.2.2")
				if took := answeredAfter(t, r); took != 0 {
					t.Errorf("another client was let in after %s", took)
				}
				at.are("192.0.2.1")
				if took := answeredAfter(t, r); took < time.Second {
					t.Errorf("it was let in after %s itself", took)
				}
			})
		})
	}
}

// Who would have to wait for longer than is good for anybody is sent away.
func TestConnectionThatOpensFarTooManyStreamsIsClosed(t *testing.T) {
	var log transcript.Log
	limits := xds.Limits{Limits: streams.Limits{NewStreamsPerClient: streams.Rate{PerSecond: 1, Burst: 2}}}
	timed(t, setup{limits: limits, log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, r *rig) {
		flood := r.wired(t)
		for n := uint32(1); n < 100; n += 2 {
			flood.send(append(opening(n, adsDelta), resetting(n)...))
		}
		<-flood.ended
		if n := r.rejectedFor("streams"); n != 1 {
			t.Errorf("%d were counted", n)
		}
		if !strings.Contains(log.String(), "more than 1 streams a second begin there") {
			t.Errorf("it logs %q", log.String())
		}
	})
}

// Networks of the sixth version have more addresses than could be counted.
func TestAddressesOfOneNetworkAreOneClient(t *testing.T) {
	var at places
	timed(t, setup{from: at.from, limits: xds.Limits{Limits: streams.Limits{StreamsPerClient: 1}}}, func(t *testing.T, r *rig) {
		at.are("2001:db8::1")
		first := openRaw(t, r.dial(), adsDelta)
		first.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		first.delta()
		at.are("2001:db8::ffff:2")
		second := openRaw(t, r.dial(), adsDelta)
		second.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds})
		if err := second.end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "2001:db8::/64") {
			t.Errorf("got %v", err)
		}
		at.are("2001:db8:0:1::1")
		answeredAfter(t, r)
	})
}

// An identity is one client, from whatever addresses it connects.
func TestNewStreamsOfOneIdentityAreLimited(t *testing.T) {
	var at places
	at.are("192.0.2.1")
	limits := xds.Limits{Limits: streams.Limits{NewStreamsPerClient: streams.Rate{PerSecond: 0.01, Burst: 2}}}
	r := newSecured(t, setup{from: at.from, limits: limits}, true)
	ask := func(account, from string) error {
		at.are(from)
		s := openRaw(t, r.over(r.ca.Client(r.ca.Issue(account, "spiffe://cluster.local/ns/shop/sa/"+account))), adsSotw)
		s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds})
		return s.wire.RecvMsg(&discoveryv3.DiscoveryResponse{})
	}
	for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
		if err := ask("one", from); err != nil {
			t.Errorf("from %s: %v", from, err)
		}
	}
	if err := ask("one", "192.0.2.3"); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "sa/one") {
		t.Errorf("a third: %v", err)
	}
	if err := ask("other", "192.0.2.3"); err != nil {
		t.Errorf("another identity: %v", err)
	}
}

// Proxies ping every few seconds, to notice soon that we are gone.
func TestPoint65_PingsEveryTwoSecondsAreNormal(t *testing.T) {
	pinged := func(every time.Duration) (closed bool, log string) {
		var text transcript.Log
		timed(t, setup{log: slog.New(slog.NewTextHandler(&text, nil))}, func(t *testing.T, r *rig) {
			conn := r.wired(t)
			m := marshalled(t, &discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
			conn.send(append(opening(1, adsDelta), saying(1, len(m), m)...))
			synctest.Wait()
			for range 100 {
				conn.send(http2Frame(framePing, 0, 0, make([]byte, 8)))
				time.Sleep(every)
			}
			synctest.Wait()
			closed = conn.closed()
		})
		return closed, text.String()
	}
	if closed, log := pinged(2*time.Second - 50*time.Millisecond); closed || log != "" {
		t.Errorf("pings every 2 s: closed is %t, and it logs %q", closed, log)
	}
	if closed, log := pinged(500 * time.Millisecond); !closed || !strings.Contains(log, "it was pinged more often than every 2s") {
		t.Errorf("pings every 0.5 s: closed is %t, and it logs %q", closed, log)
	}
}
