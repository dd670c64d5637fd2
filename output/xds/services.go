package xds

import (
	"google.golang.org/grpc"

	"github.com/isthmus-mesh/isthmus/push"
)

// every is the type of streams that carry all types.
const every push.Type = -1

// service is a discovery service of the protocol. All have the same two
// methods, under other names.
type service struct {
	name, stream, delta string
	typeURL             string // of its only type; empty if it carries all
}

// Names of the types that have a service of their own.
const (
	clusterURL  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeURL    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

var services = []service{
	{"envoy.service.discovery.v3.AggregatedDiscoveryService", "StreamAggregatedResources", "DeltaAggregatedResources", ""},
	{"envoy.service.cluster.v3.ClusterDiscoveryService", "StreamClusters", "DeltaClusters", clusterURL},
	{"envoy.service.endpoint.v3.EndpointDiscoveryService", "StreamEndpoints", "DeltaEndpoints", endpointURL},
	{"envoy.service.listener.v3.ListenerDiscoveryService", "StreamListeners", "DeltaListeners", listenerURL},
	{"envoy.service.route.v3.RouteDiscoveryService", "StreamRoutes", "DeltaRoutes", routeURL},
}

// Order is the order in which types reach a client, that of the protocol's
// document: what is referred to before what refers to it.
func Order() []string {
	return []string{
		clusterURL,
		endpointURL,
		"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
		listenerURL,
		"type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
		routeURL,
		"type.googleapis.com/envoy.config.route.v3.VirtualHost",
	}
}

// register offers every service whose type the engine has.
func (s *Server) register() {
	for _, offered := range services {
		only, known := s.engine.Type(offered.typeURL)
		if offered.typeURL == "" {
			only, known = every, true
		}
		if known {
			s.grpc.RegisterService(&grpc.ServiceDesc{ServiceName: offered.name, Streams: []grpc.StreamDesc{
				s.method(offered.stream, push.WholeState, only), s.method(offered.delta, push.Delta, only),
			}}, nil)
		}
	}
}

func (s *Server) method(name string, mode push.Mode, only push.Type) grpc.StreamDesc {
	return grpc.StreamDesc{
		StreamName: name, ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, wire grpc.ServerStream) (err error) {
			defer s.survive(&err)
			return s.serve(wire, mode, only)
		},
	}
}
