package xds_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"

	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// nag rejects the clusters as often as they are sent, with a long reason.
func nag(t *testing.T, conn *grpc.ClientConn, node *corev3.Node, times int) {
	t.Helper()
	s := openRaw(t, conn, adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: cds, ResourceNamesSubscribe: clustersOf(probe)})
	for range times {
		s.say(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: cds, ResponseNonce: s.delta().GetNonce(), ErrorDetail: &status.Status{Message: strings.Repeat("no ", 10_000)},
			ResourceNamesUnsubscribe: clustersOf(probe),
		})
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResourceNamesSubscribe: clustersOf(probe)})
	}
}

// A NACK of what was never sent, or was answered before, is none: whoever sends such
// may send them without end.
func TestNACKWithAStaleNonceLogsNothing(t *testing.T) {
	var log transcript.Log
	timed(t, setup{log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, r *rig) {
		reason := &status.Status{Message: "no"}
		d := openRaw(t, r.dial(), adsDelta)
		d.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: cds})
		nonce := d.delta().GetNonce()
		d.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResponseNonce: nonce})
		s := openRaw(t, r.dial(), adsSotw)
		s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds})
		first := s.sotw()
		s.say(&discoveryv3.DiscoveryRequest{TypeUrl: cds, ResponseNonce: first.GetNonce(), VersionInfo: first.GetVersionInfo()})
		for _, stale := range []string{nonce, "", "17", "x", "99999999999999999999"} {
			d.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResponseNonce: stale, ErrorDetail: reason})
			s.say(&discoveryv3.DiscoveryRequest{TypeUrl: cds, ResponseNonce: stale, ErrorDetail: reason})
		}
		synctest.Wait()
		if text := log.String(); text != "" {
			t.Errorf("it logs %s", text)
		}
		nag(t, r.dial(), rawNode, 1)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "client NACKed a response") != 1 {
			t.Errorf("of one that was open it logs %q", text)
		}
	})
}

// Thousands of lines of a few KiB each second would fill a disk. Each is logged or
// counted, whatever brought it about.
func TestClientsCannotFloodTheLog(t *testing.T) {
	const streams, each, streamless = 200, 5, 100
	var log transcript.Log
	timed(t, setup{log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, r *rig) {
		conn := r.dial()
		for range streams {
			nag(t, conn, xdsclient.Node(strings.Repeat("i", 4000), "shop", "envoy"), each)
		}
		for range streamless {
			s := openRaw(t, conn, adsDelta)
			s.say(&discoveryv3.DeltaDiscoveryRequest{Node: xdsclient.Node("x", strings.Repeat("*", 4000), "envoy"), TypeUrl: cds})
			_ = s.end()
		}
		synctest.Wait()
		flood := log.String()
		if n := strings.Count(flood, "\n"); n != 10 || len(flood) > 100<<10 {
			t.Errorf("%d lines of %d bytes were logged in no time", n, len(flood))
		}

		time.Sleep(time.Minute)
		nag(t, conn, xdsclient.Node("late", "shop", "envoy"), 1)
		synctest.Wait()
		last := strings.TrimPrefix(log.String(), flood)
		if !strings.Contains(last, "client=late") {
			t.Errorf("a minute later it says %q", last)
		}
		if left := fmt.Sprintf("unlogged=%d\n", streams*each+streamless-10); !strings.HasSuffix(last, left) {
			t.Errorf("of %d lines 10 were logged, and it does not say %q: %q", streams*each+streamless, left, last)
		}
	})
}
