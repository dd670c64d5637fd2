package istio_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// sight is all that an istiod ever says of the endpoints of a cluster.
type sight struct {
	t    *testing.T
	name string

	mu   sync.Mutex
	all  []map[string]int // how often each address is an endpoint, one state after the other
	err  error
	from int // states from here on count; see Mark
}

const assignments = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// startPromptIstiod starts an istiod that pushes each change of endpoints at once, and
// does not wait for others to come: nothing that it would push for a moment is hidden.
func startPromptIstiod(t *testing.T, c *cluster.Cluster) *cluster.Istiod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	istiod, err := c.StartIstiodWith(ctx, "", "PILOT_ENABLE_EDS_DEBOUNCE=false", "PILOT_DEBOUNCE_AFTER=1ms", "PILOT_DEBOUNCE_MAX=5ms")
	if err != nil {
		t.Fatal(err)
	}
	return istiod
}

// watchEndpoints follows a cluster, such as outbound|80||reviews.example.com, as a
// workload of the namespace.
func watchEndpoints(t *testing.T, istiod *cluster.Istiod, namespace, name string) *sight {
	t.Helper()
	conn, err := grpc.NewClient(istiod.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := &sight{t: t, name: name}
	first := &discoveryv3.DiscoveryRequest{TypeUrl: assignments, ResourceNames: []string{name}, Node: &corev3.Node{
		Id: fmt.Sprintf("sidecar~10.77.0.1~client.%[1]s~%[1]s.svc.cluster.local", namespace),
	}}
	if err := stream.Send(first); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { s.read(stream) })
	t.Cleanup(func() { cancel(); _ = conn.Close(); reading.Wait() })
	return s
}

func (s *sight) read(stream grpc.BidiStreamingClient[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) {
	for {
		response, err := stream.Recv()
		if err == nil {
			err = s.take(response)
		}
		if err == nil {
			err = stream.Send(&discoveryv3.DiscoveryRequest{
				TypeUrl: assignments, ResourceNames: []string{s.name}, VersionInfo: response.GetVersionInfo(), ResponseNonce: response.GetNonce(),
			})
		}
		if err != nil {
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			return
		}
	}
}

func (s *sight) take(response *discoveryv3.DiscoveryResponse) error {
	for _, resource := range response.GetResources() {
		var assignment endpointv3.ClusterLoadAssignment
		if err := resource.UnmarshalTo(&assignment); err != nil {
			return err
		}
		now := map[string]int{}
		for _, place := range assignment.GetEndpoints() {
			for _, e := range place.GetLbEndpoints() {
				now[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()]++
			}
		}
		s.mu.Lock()
		s.all = append(s.all, now)
		s.mu.Unlock()
	}
	return nil
}

// Await waits until the endpoints are these, each as often as it says.
func (s *sight) Await(want map[string]int) {
	s.t.Helper()
	await(s.t, "the endpoints of "+s.name, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.all) == 0 || !maps.Equal(s.all[len(s.all)-1], want) {
			return errors.Join(fmt.Errorf("they are %v, want %v", s.all[max(0, len(s.all)-1):], want), s.err)
		}
		return nil
	})
}

// Mark has what was said so far not count any more, but for the newest.
func (s *sight) Mark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = max(len(s.all)-1, 0)
}

// MustNeverLack is that no state since the mark lacked one of the addresses. It
// returns how many states there were.
func (s *sight) MustNeverLack(addresses map[string]int) int {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.t.Errorf("the stream has ended: %v", s.err)
	}
	for i, state := range s.all[s.from:] {
		lacks := 0
		for address := range addresses {
			if state[address] == 0 {
				lacks++
			}
		}
		if lacks > 0 {
			s.t.Errorf("state %d of %d lacks %d of %d endpoints", i+1, len(s.all)-s.from, lacks, len(addresses))
		}
	}
	return len(s.all) - s.from
}
