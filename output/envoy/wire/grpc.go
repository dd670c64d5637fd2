package wire

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
)

// APIListener returns the listener of a gRPC client's target, which leads to a route
// configuration.
func APIListener(name, routes string) *listenerv3.Listener {
	return apiListener(name, &hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
			Rds: &hcmv3.Rds{ConfigSource: fromADS(), RouteConfigName: routes},
		},
	})
}

// EmptyListener returns a listener without routes for gRPC: calls fail at once. Without a
// virtual host, grpc-node would end with an exception.
func EmptyListener(name string) *listenerv3.Listener {
	return apiListener(name, &hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "absent", VirtualHosts: []*routev3.VirtualHost{{Name: "absent", Domains: []string{"*"}}},
		}},
	})
}

func apiListener(name string, m *hcmv3.HttpConnectionManager) *listenerv3.Listener {
	m.StatPrefix = name
	m.HttpFilters = []*hcmv3.HttpFilter{router()}
	return &listenerv3.Listener{
		Name:        name,
		ApiListener: &listenerv3.ApiListener{ApiListener: packed(m)},
	}
}

// GRPCRoutes returns the route configuration of a gRPC client for one service port, by the names
// of its host. An authority contains the port, unless it was set by hand.
func GRPCRoutes(name string, hosts []string, port uint32, to Target) *routev3.RouteConfiguration {
	action := routeTo(to.Cluster)
	var domains []string
	for _, host := range hosts {
		domains = append(domains, names.Listener(host, port), host)
	}
	action.RetryPolicy = grpcRetryPolicy(to.Policy)
	return &routev3.RouteConfiguration{
		Name: name,
		VirtualHosts: []*routev3.VirtualHost{{
			Name:    domains[0],
			Domains: domains,
			Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
				Action: &routev3.Route_Route{Route: action},
			}},
		}},
	}
}

// Runtime returns a layer of the runtime in which nothing is set. Envoy NACKs a response
// without a layer.
func Runtime(name string) *runtimev3.Runtime {
	return &runtimev3.Runtime{Name: name, Layer: &structpb.Struct{}}
}
