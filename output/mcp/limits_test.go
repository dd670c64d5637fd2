package mcp_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	wire "github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// secured is a setup whose sinks have to prove who they are.
func secured(t *testing.T, ca *authority.Authority) (s setup, authorities *atomic.Pointer[certs.Authorities]) {
	t.Helper()
	pair := ca.Issue("localhost")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	authorities = &atomic.Pointer[certs.Authorities]{}
	authorities.Store(&certs.Authorities{Own: ca.Client().RootCAs})
	return setup{
		tls:       &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities.Load().Own},
		clientCAs: authorities.Load, trustDomains: []string{"cluster.local"},
		limits: mcp.Limits{Limits: streams.Limits{Recheck: 10 * time.Millisecond}},
	}, authorities
}

// Only control planes read the configuration of the mesh.
func TestOnlyTheRootNamespaceMayRead(t *testing.T) {
	ca := authority.New(t, "ca")
	s, _ := secured(t, ca)
	r := newRig(t, s)
	r.put(entries, "a/one", "1")
	for uri, want := range map[string]string{
		"spiffe://cluster.local/ns/istio-system/sa/pilot": "",
		"spiffe://cluster.local/ns/shop/sa/web":           `not of the namespace "istio-system"`,
		"spiffe://other.domain/ns/istio-system/sa/pilot":  "trust domain",
		"spiffe://cluster.local/pilot":                    "not of the form",
	} {
		r.security = credentials.NewTLS(ca.Client(ca.Issue("pilot", uri)))
		sink := r.sink("pilot")
		sink.Ask(entries, true)
		if want == "" {
			holds(t, r, sink, entries, true)
			if c := r.engine.Clients(); len(c) != 1 || c[0].Identity != uri || !c[0].Proven {
				t.Errorf("the clients are %+v", c)
			}
			continue
		}
		if err := sink.End(); grpcstatus.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// A stream does not outlive the authority that its sink was let in by.
func TestWithdrawnAuthorityEndsItsStreams(t *testing.T) {
	ca := authority.New(t, "ca")
	s, authorities := secured(t, ca)
	r := newRig(t, s)
	r.put(entries, "a/one", "1")
	r.security = credentials.NewTLS(ca.Client(ca.Issue("pilot", "spiffe://cluster.local/ns/istio-system/sa/pilot")))
	sink := r.sink("pilot")
	sink.Ask(entries, true)
	holds(t, r, sink, entries, true)
	authorities.Store(&certs.Authorities{Own: x509.NewCertPool()})
	if err := sink.End(); grpcstatus.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "connect again") {
		t.Errorf("it ended with %v", err)
	}
}

// A stream that asks for too much ends, with the reason. Others go on.
func TestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		limits mcp.Limits
		do     func(s *mcpsink.Sink)
		want   string
	}{
		"versions": {mcp.Limits{Versions: 2}, func(s *mcpsink.Sink) {
			s.Of(entries).Versions = map[string]string{"a/1": "", "a/2": "", "a/3": ""}
			s.Ask(entries, true)
		}, "more than 2 initial resource versions"},
		"a request": {mcp.Limits{Limits: streams.Limits{Message: 1000}}, func(s *mcpsink.Sink) {
			s.Send(&wire.RequestResources{Collection: strings.Repeat("c", 2000)})
		}, "more than 1000 bytes"},
		"a field": {mcp.Limits{FieldBytes: 100}, func(s *mcpsink.Sink) {
			s.Send(&wire.RequestResources{SinkNode: &wire.SinkNode{Id: strings.Repeat("i", 2000)}, Collection: entries})
		}, "a field of more than 100 bytes"},
		"unknown collections": {mcp.Limits{Unknown: 3}, func(s *mcpsink.Sink) {
			for i := range 4 {
				s.Ask("unknown/"+strconv.Itoa(i), false)
			}
		}, "more than 3 collections"},
		"no collection": {mcp.Limits{}, func(s *mcpsink.Sink) { s.Ask("", false) }, "without a collection"},
		"streams":       {mcp.Limits{Limits: streams.Limits{Streams: 1}}, func(s *mcpsink.Sink) { s.Ask(entries, false) }, "which is all that are let in"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{limits: test.limits})
			r.put(entries, "a/one", "1")
			good := r.sink("good")
			good.Ask(entries, false)
			holds(t, r, good, entries, false)
			bad := r.sink("bad")
			test.do(bad)
			if err := bad.End(); !strings.Contains(err.Error(), test.want) {
				t.Errorf("it ended with %v", err)
			}
			r.put(entries, "a/one", "2")
			holds(t, r, good, entries, false)
			total := uint64(0)
			for _, n := range r.server.Rejected() {
				total += n
			}
			if total != 1 {
				t.Errorf("%d streams are counted as rejected", total)
			}
		})
	}
}

// Connections are guarded as those of xDS are: one on which streams are opened too fast
// is closed. Others go on.
func TestConnectionsAreGuarded(t *testing.T) {
	ca := authority.New(t, "ca")
	s, _ := secured(t, ca)
	s.tcp = true
	s.limits.NewStreamsPerClient = streams.Rate{PerSecond: 0.001, Burst: 3}
	r := newRig(t, s)
	r.put(entries, "a/one", "1")
	r.security = credentials.NewTLS(ca.Client(ca.Issue("pilot", "spiffe://cluster.local/ns/istio-system/sa/pilot")))
	good, flood := r.sink("good"), r.dial()
	good.Ask(entries, true)
	holds(t, r, good, entries, true)
	var last *mcpsink.Sink
	for range 3 {
		last = mcpsink.Dial(t, flood, "flood")
		last.Ask(entries, true)
	}
	if err := last.End(); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("it ended with %v", err)
	}
	rejects(t, r, "streams")
	r.put(entries, "a/one", "2")
	holds(t, r, good, entries, true)
}

// rejects waits until one is counted as rejected for a reason.
func rejects(t *testing.T, r *rig, reason string) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, "a count", func() error {
		if counts := maps.Collect(r.server.Rejected()); counts[reason] != 1 {
			return fmt.Errorf("rejected are %v", counts)
		}
		return nil
	})
}

// A connection that makes no handshake is closed.
func TestSilentConnectionIsClosed(t *testing.T) {
	s, _ := secured(t, authority.New(t, "ca"))
	s.tcp, s.limits.Handshake = true, 100*time.Millisecond
	r := newRig(t, s)
	silent, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("something was said to who says nothing")
	}
	rejects(t, r, "handshake")
}

// Who has nothing to say takes the place of others, and one that NACKs without end is
// slowed down.
func TestSilenceAndFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{limits: mcp.Limits{Limits: streams.Limits{FirstRequest: 5 * time.Second}}})
		defer r.stop()
		r.put(entries, "a/one", "bad")
		begun := time.Now()
		if err := r.sink("silent").End(); grpcstatus.Code(err) != codes.DeadlineExceeded || time.Since(begun) != 5*time.Second {
			t.Errorf("it ended after %s with %v", time.Since(begun), err)
		}
		s := r.sink("pilot")
		s.Ask(entries, false)
		begun = time.Now()
		for i := range 200 {
			s.NACK(s.Receive(), false, "never")
			r.put(entries, "a/one", "bad"+strconv.Itoa(i))
		}
		s.Receive()
		if took := time.Since(begun); took < 9*time.Second {
			t.Errorf("200 NACKs took %s", took)
		}
	})
}

// Before anything was listed nobody is served, and sinks have to come again.
func TestNothingIsServedBeforeItIsPrimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, setup{})
		defer r.stop()
		s := r.sink("pilot")
		s.Ask(entries, false)
		if err := s.End(); grpcstatus.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "not primed") {
			t.Errorf("it ended with %v", err)
		}
	})
}
