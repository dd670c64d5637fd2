package scale

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

var (
	chainPace = flag.Int("chain-pace", 350, "services that change in a second in the benchmark of a chain")
	chainFor  = flag.Duration("chain-for", time.Minute, "how long they do")
)

const chained = `
sources:
- name: upstream
  xds: {address: %q}
outputs:
  xds: {listen: 127.0.0.1:0}
admin: {listen: 127.0.0.1:0}
log: {level: info, format: json}
`

// BenchmarkChain measures changes of a mesh that pass through two programs: from the
// moment a file is in place to the moment a client of the second one acknowledges the
// change. It puts the bytes between the two beside those of the objects that changed.
func BenchmarkChain(b *testing.B) {
	r := newRegistry(b, heavyTailed(*meshServices, *meshEndpoints, *meshLargest), brief)
	first := startServer(b, program(b), r, "")
	sizes := objectSizes(b, first, r.services())
	between := startRelay(b, first.xds)
	began := time.Now()
	second := startOn(b, program(b), fmt.Sprintf(chained, between.address))
	b.ReportMetric(time.Since(began).Seconds(), "start-s")

	f := newFleet(second, 1)
	f.connect(b, all(envoyScript(true, r.services(), nil)))
	defer f.disconnect(b)
	settle()
	n := int(chainFor.Seconds() * float64(*chainPace))
	s := &steady{written: map[string]time.Time{}, done: make(chan struct{}), left: n}
	f.steady.Store(s)
	carried, objects := between.received.Load(), 0
	firstUsed, secondUsed := first.cpu(b), second.cpu(b)
	began = time.Now()
	draw := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same each time
	ticker := time.NewTicker(time.Second / time.Duration(*chainPace))
	defer ticker.Stop()
	for range n {
		service := draw.IntN(r.services())
		objects += sizes[fmt.Sprintf("shop/service-%04d-0", service)]
		s.write(clusterName(service), func() time.Time { return r.change(b, service) })
		<-ticker.C
	}
	select {
	case <-s.done:
	case err := <-f.broken:
		b.Fatal(err)
	case <-time.After(patience):
		b.Fatalf("%d of %d changes have not arrived after %v", s.left, n, patience)
	}
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "changes/s") // fewer than asked for where the machine is busy
	b.ReportMetric(ms(first.cpu(b)-firstUsed)/float64(n), "first-cpu-ms/change")
	b.ReportMetric(ms(second.cpu(b)-secondUsed)/float64(n), "second-cpu-ms/change")
	b.ReportMetric(s.took.median(), "p50-ms")
	b.ReportMetric(s.took.quantile(0.99), "p99-ms")
	b.ReportMetric(s.took.quantile(1), "longest-ms")
	b.ReportMetric(float64(between.received.Load()-carried)/float64(objects), "bytes/changed-byte")
	f.verify(b)
	quiet(b)
}

// objectSizes returns how large the ServiceEntry of each service is on the wire.
func objectSizes(b *testing.B, s *server, services int) map[string]int {
	b.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.xds, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		b.Fatal(err)
	}
	const entries = "networking.istio.io/v1/ServiceEntry"
	request := &discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: "sidecar~127.0.0.1~sizes.istio-system~istio-system.svc.cluster.local"}, TypeUrl: entries, ResourceNamesSubscribe: []string{"*"},
	}
	sizes := map[string]int{}
	for len(sizes) < services {
		if err := stream.Send(request); err != nil {
			b.Fatal(err)
		}
		m, err := stream.Recv()
		if err != nil {
			b.Fatalf("%d of %d services: %v", len(sizes), services, err)
		}
		for _, resource := range m.GetResources() {
			sizes[resource.GetName()] = proto.Size(resource)
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: entries, ResponseNonce: m.GetNonce()}
	}
	return sizes
}

// relay passes connections on to an address, and counts what comes back.
type relay struct {
	meter
	address string
}

func startRelay(b *testing.B, to string) *relay {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		b.Fatal(err)
	}
	r := &relay{address: listener.Addr().String()}
	var running sync.WaitGroup
	b.Cleanup(func() { _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.pass(from, to) })
		}
	})
	return r
}

// pass passes on what comes either way until one of both ends.
func (r *relay) pass(from net.Conn, to string) {
	there, err := new(net.Dialer).Dial("tcp", to) //nolint:noctx // to loopback
	if err != nil {
		_ = from.Close()
		return
	}
	back := meteredConn{there, &r.meter}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, back}, {back, from}} {
		both.Go(func() {
			_, _ = io.Copy(struct{ io.Writer }{way[1]}, struct{ io.Reader }{way[0]})
			_ = from.Close()
			_ = there.Close()
		})
	}
	both.Wait()
}
