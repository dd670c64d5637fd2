package xds_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/source/xds"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// script is a peer of which the test has the one stream.
type script struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	streams chan discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	over    chan struct{}
	stream  discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	sent    int
	mark    string // of a first state
}

// DeltaAggregatedResources implements the service.
func (s *script) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	s.streams <- stream
	<-s.over
	return nil
}

const serviceEntries = "networking.istio.io/v1/ServiceEntry"

// scripted has a source mirror a peer that has so many services, and returns the peer
// once all of them are stored.
func scripted(tb testing.TB, services int) *script {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &script{streams: make(chan discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer, 1), over: make(chan struct{})}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	c := &xds.Config{Address: listener.Addr().String(), Types: []string{"ServiceEntry"}}
	if err := c.Validate(); err != nil {
		tb.Fatal(err)
	}
	mirror := supervise.New("other", xds.New(*c, source.Env{Instance: "one", Name: "other"}), store.NewMemory(store.Config{}), supervise.Config{Kind: "xds"})
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- mirror.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		<-ended
		close(s.over)
		server.Stop()
	})
	s.stream = <-s.streams
	if _, err := s.stream.Recv(); err != nil {
		tb.Fatal(err)
	}
	s.sendAll(tb, services)
	until.NoError(tb, 10*time.Millisecond, "the first listing", func() error {
		if at := mirror.Status().LastListing; at.IsZero() {
			return errors.New("there is none")
		}
		return nil
	})
	return s
}

// sendAll sends all services in several answers, of which the last is marked.
func (s *script) sendAll(tb testing.TB, services int) {
	tb.Helper()
	const most = 1000
	for from := 0; from < services; from += most {
		var list []*discoveryv3.Resource
		for i := from; i < min(from+most, services); i++ {
			list = append(list, resourceOf(i, 0))
		}
		if s.mark = ";first-state=partial"; from+most >= services {
			s.mark = ";first-state=complete"
		}
		s.send(tb, list...)
	}
}

func resourceOf(i, version int) *discoveryv3.Resource {
	name := fmt.Sprintf("shop/service-%05d", i)
	return &discoveryv3.Resource{Name: name, Version: strconv.Itoa(version), Resource: service(name, fmt.Sprintf("10.0.%d.%d", version>>8&255, version&255))}
}

// send sends resources, and returns once they are ACKed, which is when they are stored.
func (s *script) send(tb testing.TB, list ...*discoveryv3.Resource) {
	tb.Helper()
	s.sent++
	m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: serviceEntries, Nonce: strconv.Itoa(s.sent), Resources: list, SystemVersionInfo: s.mark}
	if err := s.stream.Send(m); err != nil {
		tb.Fatal(err)
	}
	q, err := s.stream.Recv()
	if err != nil || q.GetErrorDetail() != nil || q.GetResponseNonce() != m.GetNonce() {
		tb.Fatal(q, err)
	}
}

// What an answer costs follows what it has, not what is held besides.
func TestChangeCostsNoMoreWhenMoreIsHeld(t *testing.T) {
	perChange := func(services int) uint64 {
		s := scripted(t, services)
		const changes = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range changes {
			s.send(t, resourceOf(i, i+1))
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / changes
	}
	few, many := perChange(100), perChange(20_000)
	if many > 3*few {
		t.Errorf("a change takes %d bytes of memory among 20,000 services, and %d among 100", many, few)
	}
}

// BenchmarkChange is one service that changes: from the answer to its ACK, which is
// sent once it is stored.
func BenchmarkChange(b *testing.B) {
	for _, services := range []int{100, 28_000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			s := scripted(b, services)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				s.send(b, resourceOf(n%services, n+1))
			}
		})
	}
}
