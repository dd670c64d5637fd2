package xds_test

import (
	"slices"
	"strings"
	"testing"

	clusterservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listenerservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	runtimeservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	secretservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// perType are the services beside the aggregated one that have something to
// serve, by the names that clients are generated with.
var perType = []struct{ typeURL, resource, sotw, delta string }{
	{cds, clusterOf("a.example"), clusterservicev3.ClusterDiscoveryService_StreamClusters_FullMethodName, clusterservicev3.ClusterDiscoveryService_DeltaClusters_FullMethodName},
	{eds, clusterOf("a.example"), endpointservicev3.EndpointDiscoveryService_StreamEndpoints_FullMethodName, endpointservicev3.EndpointDiscoveryService_DeltaEndpoints_FullMethodName},
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

// Clusters take their endpoints over ADS, so a stream of clusters alone is for
// those that a client which has ADS asks for by name. Whoever asks for all of
// them, in whatever words, is shown how to.
func TestPoint1_AllClustersAreServedOverADSOnly(t *testing.T) {
	r := newProbed(t)
	requests := map[string][]proto.Message{
		clusterservicev3.ClusterDiscoveryService_StreamClusters_FullMethodName: {
			&discoveryv3.DiscoveryRequest{Node: rawNode},
			&discoveryv3.DiscoveryRequest{Node: rawNode, ResourceNames: []string{clusterOf(probe), "*"}},
		},
		clusterservicev3.ClusterDiscoveryService_DeltaClusters_FullMethodName: {
			&discoveryv3.DeltaDiscoveryRequest{Node: rawNode},
			&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, ResourceNamesSubscribe: []string{clusterOf(probe), "*"}},
		},
	}
	for method, list := range requests {
		for _, m := range list {
			s := openRaw(t, r.dial(), method)
			s.say(m)
			if err := s.end(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "cds_config: {resource_api_version: V3, ads: {}}") {
				t.Errorf("%s: %v: got %v", method, m, err)
			}
		}
	}
	if n := r.rejectedFor("service"); n != 4 {
		t.Errorf("%d were counted", n)
	}
}

// One more cluster by name, on a stream that goes on: what on-demand discovery does.
func TestPoint1_ClustersAreServedByNameOnAStreamOfTheirOwn(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	d := openRaw(t, r.dial(), clusterservicev3.ClusterDiscoveryService_DeltaClusters_FullMethodName)
	d.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, ResourceNamesSubscribe: clustersOf("a.example")})
	first := d.delta()
	d.say(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: first.GetNonce(), ResourceNamesSubscribe: clustersOf("b.example", "missing.example")})
	second := d.delta()
	if len(first.GetResources()) != 1 || len(second.GetResources()) != 1 || !slices.Equal(second.GetRemovedResources(), clustersOf("missing.example")) {
		t.Errorf("got %v, then %v", first, second)
	}
	s := openRaw(t, r.dial(), clusterservicev3.ClusterDiscoveryService_StreamClusters_FullMethodName)
	s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, ResourceNames: clustersOf("a.example")})
	m := s.sotw()
	s.say(&discoveryv3.DiscoveryRequest{VersionInfo: m.GetVersionInfo(), ResponseNonce: m.GetNonce(), ResourceNames: clustersOf("a.example", "b.example")})
	if again := s.sotw(); len(m.GetResources()) != 1 || len(again.GetResources()) != 2 {
		t.Errorf("got %v, then %v", m, again)
	}
}

func TestPoint1_ListenersAloneAreNotServed(t *testing.T) {
	r := newProbed(t)
	for _, method := range []string{
		listenerservicev3.ListenerDiscoveryService_StreamListeners_FullMethodName,
		listenerservicev3.ListenerDiscoveryService_DeltaListeners_FullMethodName,
	} {
		err := openRaw(t, r.dial(), method).end()
		if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "lds_config: {resource_api_version: V3, ads: {}}") {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

// Nobody has runtime layers and secrets, which clients wait for at their start. They
// are answered, over ADS and on streams of their own: as any name that does not
// exist, and with a layer in which nothing is set where there is no such answer.
func TestPoint53_WhatNobodyHasIsAnswered(t *testing.T) {
	const runtime, secret = "type.googleapis.com/envoy.service.runtime.v3.Runtime", "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	r := newProbed(t)
	for _, row := range []struct{ typeURL, sotw, delta string }{
		{runtime, adsSotw, adsDelta},
		{secret, adsSotw, adsDelta},
		{runtime, runtimeservicev3.RuntimeDiscoveryService_StreamRuntime_FullMethodName, runtimeservicev3.RuntimeDiscoveryService_DeltaRuntime_FullMethodName},
		{secret, secretservicev3.SecretDiscoveryService_StreamSecrets_FullMethodName, secretservicev3.SecretDiscoveryService_DeltaSecrets_FullMethodName},
	} {
		d := openRaw(t, r.dial(), row.delta)
		d.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: row.typeURL, ResourceNamesSubscribe: []string{"it"}})
		if m := d.delta(); len(m.GetResources()) != 0 || !slices.Equal(m.GetRemovedResources(), []string{"it"}) {
			t.Errorf("%s: got %v", row.delta, m)
		}
		s := openRaw(t, r.dial(), row.sotw)
		s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: row.typeURL, ResourceNames: []string{"it"}})
		m := s.sotw()
		if row.typeURL == secret && len(m.GetResources()) != 0 {
			t.Errorf("%s: got %v", row.sotw, m)
		}
		if row.typeURL == runtime {
			layer := &runtimeservicev3.Runtime{}
			if len(m.GetResources()) != 1 || m.GetResources()[0].UnmarshalTo(layer) != nil || layer.GetName() != "it" || len(layer.GetLayer().GetFields()) != 0 {
				t.Errorf("%s: got %v", row.sotw, m)
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
