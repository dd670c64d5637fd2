package xds_test

import (
	"context"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// raw is a stream on which a test sends and receives every message itself.
type raw struct {
	t    testing.TB
	wire grpc.ClientStream
	stop context.CancelFunc
}

func openRaw(t testing.TB, conn *grpc.ClientConn, method string) raw {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	wire, err := conn.NewStream(ctx, streamDesc, method)
	if err != nil {
		t.Fatal(err)
	}
	return raw{t, wire, stop}
}

// say sends a message. The next receive reports what is wrong with the stream.
func (r raw) say(m proto.Message) { _ = r.wire.SendMsg(m) }

func (r raw) sotw() *discoveryv3.DiscoveryResponse {
	r.t.Helper()
	m := &discoveryv3.DiscoveryResponse{}
	if err := r.wire.RecvMsg(m); err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r raw) delta() *discoveryv3.DeltaDiscoveryResponse {
	r.t.Helper()
	m := &discoveryv3.DeltaDiscoveryResponse{}
	if err := r.wire.RecvMsg(m); err != nil {
		r.t.Fatal(err)
	}
	return m
}

// end drains the stream and returns why it ended.
func (r raw) end() error {
	for {
		if err := r.wire.RecvMsg(&discoveryv3.DeltaDiscoveryResponse{}); err != nil {
			return err
		}
	}
}

var streamDesc = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

var rawNode = xdsclient.Node("raw", "shop", "envoy")

const (
	adsSotw  = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	adsDelta = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

func assignmentIn(t *testing.T, body *anypb.Any) *endpointv3.ClusterLoadAssignment {
	t.Helper()
	a := &endpointv3.ClusterLoadAssignment{}
	if err := body.UnmarshalTo(a); err != nil {
		t.Fatal(err)
	}
	return a
}

// addressIn is the address of the first endpoint; empty if there is none.
func addressIn(a *endpointv3.ClusterLoadAssignment) string {
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			return e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
		}
	}
	return ""
}
