package envoy

import (
	"iter"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/isthmus-mesh/isthmus/push"
)

// listener is a gRPC client's way in: it stands for the target the client
// dialled, and leads to the route configuration.
type listener struct{ slot }

// Refers implements [push.Referrer].
func (l listener) Refers(to string) iter.Seq[string] {
	if to == routeURL {
		return one(l.clusterName())
	}
	return none
}

// Encode implements [push.Subject].
func (l listener) Encode() push.Encoded {
	name := ListenerName(l.key.Host, l.port)
	return encode(name, listenerURL, &listenerv3.Listener{
		Name: name,
		ApiListener: &listenerv3.ApiListener{
			ApiListener: packed(&hcmv3.HttpConnectionManager{
				StatPrefix: name,
				RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
					Rds: &hcmv3.Rds{ConfigSource: fromADS(), RouteConfigName: l.clusterName()},
				},
				HttpFilters: []*hcmv3.HttpFilter{router()},
			}),
		},
	})
}

// router is the filter that gRPC demands to be the last.
func router() *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{
		Name:       "envoy.filters.http.router",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{})},
	}
}
