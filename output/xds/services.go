package xds

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/streams"
	"github.com/isthmus-mesh/isthmus/push"
)

// every is the type of streams that carry all types.
const every push.Type = -1

// service is a discovery service of the protocol. All services have the same two methods,
// under other names.
type service struct {
	name, stream, delta string
	typeURL             string // of its only type; empty if it carries all
	// named, if set, means that resources are served by name only, and is the answer to a
	// wildcard request.
	named error
	// withdrawn, if set, is the answer to every request.
	withdrawn error
}

// Names of the types that have a service of their own.
const (
	clusterURL     = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointURL    = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	memberURL      = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint"
	listenerURL    = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeURL       = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	runtimeURL     = "type.googleapis.com/envoy.service.runtime.v3.Runtime"
	virtualHostURL = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	secretURL      = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

var services = []service{
	{name: "envoy.service.discovery.v3.AggregatedDiscoveryService", stream: "StreamAggregatedResources", delta: "DeltaAggregatedResources"},
	{
		name: "envoy.service.cluster.v3.ClusterDiscoveryService", stream: "StreamClusters", delta: "DeltaClusters", typeURL: clusterURL,
		named: grpcstatus.Error(codes.InvalidArgument, "a stream of clusters alone serves those that it names: "+clustersNeedADS+
			". For all clusters use ADS: set cds_config: {resource_api_version: V3, ads: {}} in the bootstrap's dynamic_resources, beside ads_config"),
	},
	{name: "envoy.service.endpoint.v3.EndpointDiscoveryService", stream: "StreamEndpoints", delta: "DeltaEndpoints", typeURL: endpointURL},
	{
		name: "envoy.service.listener.v3.ListenerDiscoveryService", stream: "StreamListeners", delta: "DeltaListeners", typeURL: listenerURL,
		withdrawn: grpcstatus.Error(codes.Unimplemented, "listeners are not served on a stream of their own, for they take their routes over ADS. "+
			"Use ADS: set lds_config: {resource_api_version: V3, ads: {}} in the bootstrap's dynamic_resources, beside ads_config"),
	},
	{name: "envoy.service.route.v3.RouteDiscoveryService", stream: "StreamRoutes", delta: "DeltaRoutes", typeURL: routeURL},
	{name: "envoy.service.runtime.v3.RuntimeDiscoveryService", stream: "StreamRuntime", delta: "DeltaRuntime", typeURL: runtimeURL},
	{name: "envoy.service.secret.v3.SecretDiscoveryService", stream: "StreamSecrets", delta: "DeltaSecrets", typeURL: secretURL},
}

const clustersNeedADS = "clusters take their endpoints over ADS, and Envoy rejects them without it"

// Order returns the order in which types reach a client, by the protocol's document:
// referenced types before the types that refer to them.
func Order() []string {
	return []string{
		clusterURL,
		endpointURL,
		memberURL,
		secretURL,
		listenerURL,
		"type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
		routeURL,
		virtualHostURL,
	}
}

// register offers every service with a type of the engine.
func (s *Server) register() {
	for _, offered := range services {
		only, known := s.engine.Type(offered.typeURL)
		if offered.typeURL == "" {
			only, known = every, true
		}
		if known {
			s.GRPC.RegisterService(&grpc.ServiceDesc{ServiceName: offered.name, Streams: []grpc.StreamDesc{
				s.method(offered.stream, push.WholeState, only, &offered), s.method(offered.delta, push.Delta, only, &offered),
			}}, nil)
		}
	}
}

func (s *Server) method(name string, mode push.Mode, only push.Type, of *service) grpc.StreamDesc {
	handler := s.Handler(func(wire *streams.Stream) error { return s.serve(wire, mode, only, of.named) })
	if of.withdrawn != nil {
		handler = func(any, grpc.ServerStream) error { return s.Reject(streams.NotHere, of.withdrawn) }
	}
	return grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true, Handler: handler}
}
