package envoy

import "github.com/isthmus-mesh/isthmus/push"

// The types of resources, in the order in which they have to reach a client
// when they change together: what is referred to before what refers to it.
const (
	ClusterType push.Type = iota
	EndpointType
	ListenerType
	RouteType
)

// The kinds of clients a view may be of. Clients of any other kind see nothing.
const (
	KindEnvoy = "envoy"
	KindGRPC  = "grpc"
)

// Names of the types in the protocol.
const (
	clusterURL  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeURL    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// Types says how each type is delivered.
func Types() []push.TypeSpec {
	return []push.TypeSpec{
		ClusterType: {
			Name: clusterURL,
			// To a state-of-the-world client a cluster that is missing from a
			// response is a deleted cluster.
			Whole: true,
			// A cluster goes after the routes that still name it.
			RemoveLast: true,
			// Envoy warms a cluster whenever it is added or updated, and waits
			// for its assignment even if the endpoints are the same.
			With: []push.Type{EndpointType},
		},
		EndpointType: {
			Name: endpointURL,
			// An assignment goes with its cluster, hence as late.
			RemoveLast: true,
		},
		ListenerType: {
			Name:  listenerURL,
			Whole: true, // as for clusters: absence is deletion
		},
		RouteType: {
			Name: routeURL,
			// A route must not lead to a cluster that the client does not have.
			// It and its cluster carry the same name.
			Needs: []push.Type{ClusterType},
			// An Envoy whose listener waits for a route configuration ignores a
			// removal, but stops the clock after which it would go on without.
			SilentTo: []string{KindEnvoy},
		},
	}
}
