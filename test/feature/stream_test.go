package feature_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Types of resources.
const (
	clusters    = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listeners   = "type.googleapis.com/envoy.config.listener.v3.Listener"
	assignments = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// stream is an aggregated stream as Envoy opens it, for what a gRPC client does
// not show: the end of a stream and its status, and every cluster there is.
type stream struct {
	t    *testing.T
	wire discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
}

// openStream opens a stream and asks for every cluster.
func openStream(t *testing.T, i *isthmus, id string) *stream {
	t.Helper()
	s := openSilentStream(t, i)
	s.send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: id}, TypeUrl: clusters})
	return s
}

// openSilentStream opens a stream and asks for nothing.
func openSilentStream(t *testing.T, i *isthmus) *stream {
	t.Helper()
	conn, err := grpc.NewClient(i.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	i.clients = append(i.clients, func() { cancel(); _ = conn.Close() })
	s := &stream{t: t}
	s.wire, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stream) send(request *discoveryv3.DiscoveryRequest) {
	s.t.Helper()
	if err := s.wire.Send(request); err != nil {
		s.t.Fatal(err)
	}
}

// Next accepts the next response and returns the clusters in it.
func (s *stream) Next() ([]string, error) {
	response, err := s.wire.Recv()
	if err != nil {
		return nil, err
	}
	s.send(&discoveryv3.DiscoveryRequest{
		TypeUrl: response.GetTypeUrl(), VersionInfo: response.GetVersionInfo(), ResponseNonce: response.GetNonce(),
	})
	var names []string
	for _, resource := range response.GetResources() {
		var c clusterv3.Cluster
		if err := resource.UnmarshalTo(&c); err != nil {
			return nil, err
		}
		names = append(names, c.GetName())
	}
	return names, nil
}

// Await reads until there is a cluster of a host.
func (s *stream) Await(host string) {
	s.t.Helper()
	for {
		names, err := s.Next()
		if err != nil {
			s.t.Fatalf("waiting for a cluster of %s: %v", host, err)
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "||"+host) }) {
			return
		}
	}
}

// witness is a client that sees everything. What it was told, others have been
// told, or it is on its way to them.
type witness struct {
	registry *registry // to write to
	stream   *stream
	markers  int
}

// Settle returns once what was written to the registries has come through to
// the clients, and they have answered.
func (i *isthmus) Settle() {
	i.t.Helper()
	if i.witness.stream == nil {
		i.witness.stream = openStream(i.t, i, "witness")
	}
	// The second marker leaves the engine after all that came with the first.
	i.mark()
	i.mark()
	await(i.t, "every response to be answered", func() error {
		for _, c := range i.Clients() {
			for name, of := range c.Types {
				if of.State == "waiting" || of.Pending > 0 && of.Reason == "" {
					return fmt.Errorf("%s of %s: %s, %d pending", name, c.ID, of.State, of.Pending)
				}
			}
		}
		return nil
	})
}

// mark writes a service that nobody calls and waits until it arrives.
func (i *isthmus) mark() {
	i.t.Helper()
	w := &i.witness
	w.markers++
	host := fmt.Sprintf("marker-%d.example", w.markers)
	w.registry.Write("zz-marker.yaml", service{Host: host, Endpoints: []string{"{address: 192.0.2.1}"}})
	w.stream.Await(host)
}
