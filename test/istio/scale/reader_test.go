package scale_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	desired "github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// reader is an istiod with one client, which asks for the endpoints of the service.
type reader struct {
	istiod *cluster.Istiod
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
}

const typeURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

func startReader(b *testing.B, c *cluster.Cluster, size int) *reader {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	istiod, err := c.StartIstiod(ctx)
	if err != nil {
		b.Fatal(err)
	}
	const perEndpoint = 10_000 // bytes: far more than it takes
	conn, err := grpc.NewClient(istiod.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(perEndpoint*(size+1000))))
	if err != nil {
		b.Fatal(err)
	}
	r := &reader{istiod: istiod, conn: conn}
	b.Cleanup(r.stop)
	if r.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(b.Context()); err != nil {
		b.Fatal(err)
	}
	r.ask(b, &discoveryv3.DiscoveryRequest{Node: &corev3.Node{
		Id: fmt.Sprintf("sidecar~10.77.0.1~client.%[1]s~%[1]s.svc.cluster.local", namespace),
	}})
	return r
}

// stop ends the client, and then the istiod at once.
func (r *reader) stop() {
	_ = r.conn.Close() // it may be closed
	r.istiod.Kill()
}

func (r *reader) ask(b *testing.B, request *discoveryv3.DiscoveryRequest) {
	b.Helper()
	request.TypeUrl, request.ResourceNames = typeURL, []string{fmt.Sprintf("outbound|%d||%s", port, host(0))}
	if err := r.stream.Send(request); err != nil {
		b.Fatal(err)
	}
}

// await takes what istiod says until the endpoints are as they should be: it is
// sentBefore their weights by address. What comes while nobody waits waits as well.
func (r *reader) await(b *testing.B, what string, hold func(map[string]uint32) bool) {
	b.Helper()
	overdue := time.AfterFunc(patience, func() { _ = r.conn.Close() })
	defer overdue.Stop()
	for {
		response, err := r.stream.Recv()
		if err != nil {
			b.Fatalf("waiting for %s: %v", what, err)
		}
		r.ask(b, &discoveryv3.DiscoveryRequest{VersionInfo: response.GetVersionInfo(), ResponseNonce: response.GetNonce()})
		for _, resource := range response.GetResources() {
			var assignment endpointv3.ClusterLoadAssignment
			if err := resource.UnmarshalTo(&assignment); err != nil {
				b.Fatal(err)
			}
			if hold(weights(&assignment)) {
				return
			}
		}
	}
}

// awaitAll waits until the client has so many endpoints.
func (r *reader) awaitAll(b *testing.B, size int) {
	b.Helper()
	r.await(b, fmt.Sprintf("%d endpoints", size), func(all map[string]uint32) bool { return len(all) == size })
}

// awaitWeight waits until an endpoint has a weight; zero means that it is gone.
func (r *reader) awaitWeight(b *testing.B, address string, weight uint32) {
	b.Helper()
	r.await(b, address, func(all map[string]uint32) bool { return all[address] == weight })
}

func weights(assignment *endpointv3.ClusterLoadAssignment) map[string]uint32 {
	all := map[string]uint32{}
	for _, place := range assignment.GetEndpoints() {
		for _, e := range place.GetLbEndpoints() {
			all[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()] = e.GetLoadBalancingWeight().GetValue()
		}
	}
	return all
}

// url is where the API server has the objects of a kind.
func (t *trial) url(kind desired.Kind, query string) string {
	r := resources[kind]
	return fmt.Sprintf("%s/apis/%s/%s/namespaces/%s/%s?%s", t.server, r.Group, r.Version, namespace, r.Resource, query)
}

// fetch returns a page.
func fetch(b *testing.B, client *http.Client, url string) []byte {
	b.Helper()
	answer, err := client.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("GET %s: %s: %s (%v)", url, answer.Status, page, err)
	}
	return page
}

// watch counts the bytes that the API server sends to one who watches all
// kinds, until the benchmark ends.
func (t *trial) watch(b *testing.B) *atomic.Int64 {
	b.Helper()
	sent := &counter{}
	ctx, cancel := context.WithCancel(b.Context())
	var watches sync.WaitGroup
	b.Cleanup(func() { cancel(); watches.Wait() })
	for kind := range resources {
		var list struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal(fetch(b, t.raw, t.url(kind, "limit=1")), &list); err != nil {
			b.Fatal(err)
		}
		from := t.url(kind, "watch=1&resourceVersion="+list.Metadata.ResourceVersion)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		answer, err := t.raw.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		watches.Go(func() {
			defer answer.Body.Close()
			_, _ = io.Copy(sent, answer.Body) // it ends with the context
		})
	}
	return &sent.Int64
}

// counter counts what is written to it.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// heaps is what the servers hold after a collection, in MB.
func (t *trial) heaps(b *testing.B) (api, istiod float64) {
	b.Helper()
	return heap(b, t.raw, t.server), heap(b, http.DefaultClient, "http://"+t.reader.istiod.Monitoring)
}

var heapLine = regexp.MustCompile(`# HeapAlloc = (\d+)`)

func heap(b *testing.B, client *http.Client, server string) float64 {
	b.Helper()
	profile := fetch(b, client, server+"/debug/pprof/heap?gc=1&debug=1")
	return match(b, heapLine, profile) / 1e6
}

// resident is the memory of a process, in MB.
func resident(b testing.TB, p *cluster.Process) float64 {
	b.Helper()
	return probe.Memory(b, p.ID(), "VmRSS") / 1e6
}

func match(b *testing.B, line *regexp.Regexp, text []byte) float64 {
	b.Helper()
	found := line.FindSubmatch(text)
	if found == nil {
		b.Fatalf("there is no %s", line)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return value
}
