package xds

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output/xds/wire"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// every is the type of streams that carry all types.
const every world.Type = -1

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

var services = []service{
	{name: "envoy.service.discovery.v3.AggregatedDiscoveryService", stream: "StreamAggregatedResources", delta: "DeltaAggregatedResources"},
	{
		name: "envoy.service.cluster.v3.ClusterDiscoveryService", stream: "StreamClusters", delta: "DeltaClusters", typeURL: wire.ClusterURL,
		named: grpcstatus.Error(codes.InvalidArgument, "a stream of clusters alone serves those that it names: "+clustersNeedADS+
			". For all clusters use ADS: set cds_config: {resource_api_version: V3, ads: {}} in the bootstrap's dynamic_resources, beside ads_config"),
	},
	{name: "envoy.service.endpoint.v3.EndpointDiscoveryService", stream: "StreamEndpoints", delta: "DeltaEndpoints", typeURL: wire.EndpointURL},
	{
		name: "envoy.service.listener.v3.ListenerDiscoveryService", stream: "StreamListeners", delta: "DeltaListeners", typeURL: wire.ListenerURL,
		withdrawn: grpcstatus.Error(codes.Unimplemented, "listeners are not served on a stream of their own, for they take their routes over ADS. "+
			"Use ADS: set lds_config: {resource_api_version: V3, ads: {}} in the bootstrap's dynamic_resources, beside ads_config"),
	},
	{name: "envoy.service.route.v3.RouteDiscoveryService", stream: "StreamRoutes", delta: "DeltaRoutes", typeURL: wire.RouteURL},
	{name: "envoy.service.runtime.v3.RuntimeDiscoveryService", stream: "StreamRuntime", delta: "DeltaRuntime", typeURL: wire.RuntimeURL},
	{name: "envoy.service.secret.v3.SecretDiscoveryService", stream: "StreamSecrets", delta: "DeltaSecrets", typeURL: wire.SecretURL},
}

const clustersNeedADS = "clusters take their endpoints over ADS, and Envoy rejects them without it"

// Order returns the order in which types reach a client, by the protocol's document:
// referenced types before the types that refer to them.
func Order() []string {
	return []string{
		wire.ClusterURL, wire.EndpointURL, wire.MemberURL, wire.SecretURL, wire.ListenerURL, wire.ScopedRouteURL, wire.RouteURL, wire.VirtualHostURL,
	}
}

// Frame returns the bytes before the body of a resource, as in [wire.Frame].
func Frame(e world.Encoded) [2][]byte { return wire.Frame(e) }

// only returns the engine's type of a service, or [every]; served is false if the engine has
// no such type.
func (s service) only(engine *push.Engine) (t world.Type, served bool) {
	if s.typeURL == "" {
		return every, true
	}
	return engine.Type(s.typeURL)
}

// desc describes a service to gRPC.
func (s service) desc(whole, delta grpc.StreamHandler) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{ServiceName: s.name, Streams: []grpc.StreamDesc{
		{StreamName: s.stream, ServerStreams: true, ClientStreams: true, Handler: whole},
		{StreamName: s.delta, ServerStreams: true, ClientStreams: true, Handler: delta},
	}}
}
