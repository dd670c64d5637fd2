package xds_test

import (
	"strings"
	"testing"

	clusterservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listenerservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// perType are the services beside the aggregated one, by the names that
// clients are generated with.
var perType = []struct{ typeURL, resource, sotw, delta string }{
	{cds, clusterOf("a.example"), clusterservicev3.ClusterDiscoveryService_StreamClusters_FullMethodName, clusterservicev3.ClusterDiscoveryService_DeltaClusters_FullMethodName},
	{eds, clusterOf("a.example"), endpointservicev3.EndpointDiscoveryService_StreamEndpoints_FullMethodName, endpointservicev3.EndpointDiscoveryService_DeltaEndpoints_FullMethodName},
	{lds, "a.example:80", listenerservicev3.ListenerDiscoveryService_StreamListeners_FullMethodName, listenerservicev3.ListenerDiscoveryService_DeltaListeners_FullMethodName},
	{rds, clusterOf("a.example"), routeservicev3.RouteDiscoveryService_StreamRoutes_FullMethodName, routeservicev3.RouteDiscoveryService_DeltaRoutes_FullMethodName},
}

func TestPoint1_PerTypeStreams(t *testing.T) {
	r := newProbed(t, "a.example")
	node := xdsclient.Node("client", "shop", "gRPC Go")
	for _, service := range perType {
		for _, typeURL := range []string{"", service.typeURL} {
			s := openRaw(t, r.dial(), service.sotw)
			s.say(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNames: []string{service.resource}})
			if m := s.sotw(); m.GetTypeUrl() != service.typeURL || len(m.GetResources()) != 1 || m.GetResources()[0].GetTypeUrl() != service.typeURL {
				t.Errorf("%s answered %v", service.sotw, m)
			}
			d := openRaw(t, r.dial(), service.delta)
			d.say(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNamesSubscribe: []string{service.resource}})
			if m := d.delta(); m.GetTypeUrl() != service.typeURL || len(m.GetResources()) != 1 || m.GetResources()[0].GetName() != service.resource {
				t.Errorf("%s answered %v", service.delta, m)
			}
		}
	}
}

// An answer and a change on a stream that never says its type.
func TestPoint1_PerTypeStreamGoesOn(t *testing.T) {
	r := newProbed(t, "a.example")
	s := openRaw(t, r.dial(), endpointservicev3.EndpointDiscoveryService_DeltaEndpoints_FullMethodName)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, ResourceNamesSubscribe: clustersOf("a.example")})
	s.say(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: s.delta().GetNonce()})
	r.put(endpoint("shop", "a.example", "one", "10.0.0.2"))
	if m := s.delta(); len(m.GetResources()) != 1 {
		t.Errorf("got %v", m)
	}
}

func TestPoint1_PerTypeStreamOfAnotherTypeIsInvalid(t *testing.T) {
	r := newProbed(t)
	for i, service := range perType {
		other := perType[(i+1)%len(perType)].typeURL
		s, d := openRaw(t, r.dial(), service.sotw), openRaw(t, r.dial(), service.delta)
		s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: other})
		d.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: other})
		for _, err := range []error{s.end(), d.end()} {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), service.typeURL) {
				t.Errorf("%s asked on the stream of %s: %v", other, service.typeURL, err)
			}
		}
	}
}

func TestPoint6_ResponsesNameTheControlPlane(t *testing.T) {
	r := newProbed(t)
	s, d := openRaw(t, r.dial(), adsSotw), openRaw(t, r.dial(), adsDelta)
	s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds})
	d.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: cds})
	for _, got := range []string{s.sotw().GetControlPlane().GetIdentifier(), d.delta().GetControlPlane().GetIdentifier()} {
		if got != "isthmus/test" {
			t.Errorf("the control plane is %q", got)
		}
	}
}
