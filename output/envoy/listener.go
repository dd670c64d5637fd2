package envoy

import (
	"iter"
	"unicode/utf8"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
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
	return nothing
}

// Encode implements [push.Subject].
func (l listener) Encode() push.Encoded {
	return apiListener(ListenerName(l.key.Host, l.port), &hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
			Rds: &hcmv3.Rds{ConfigSource: fromADS(), RouteConfigName: l.clusterName()},
		},
	})
}

// apiListener wraps what a listener leads to as gRPC reads it.
func apiListener(name string, leadsTo *hcmv3.HttpConnectionManager) push.Encoded {
	leadsTo.StatPrefix = name
	leadsTo.HttpFilters = []*hcmv3.HttpFilter{router()}
	return encode(name, listenerURL, &listenerv3.Listener{
		Name:        name,
		ApiListener: &listenerv3.ApiListener{ApiListener: packed(leadsTo)},
	})
}

// absentListener has grpc-node sent an empty listener for one that does not exist.
// It remembers a listener that was removed, and when the same comes again takes
// it for no change: a service that returned as it was would stay lost to it. Others
// know better, and grpc-java does not get over an empty listener.
func absentListener(kind string, m push.Mode) push.Absence {
	if kind == KindGRPCNode && m == push.WholeState {
		return push.Empty
	}
	return push.Removal
}

// longestHost is that of a host in DNS. Nothing longer is worth an empty listener.
const longestHost = 253

// voidListener returns a listener without any route: calls fail at once. It has to
// have a virtual host, without which grpc-node ends with an exception.
func voidListener(name string) push.Encoded {
	host, _, ok := parseListenerName(name)
	if !ok || len(host) > longestHost || !utf8.ValidString(host) {
		return push.Encoded{}
	}
	return apiListener(name, &hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "absent", VirtualHosts: []*routev3.VirtualHost{{Name: "absent", Domains: []string{"*"}}},
		}},
	})
}

// router is the filter that gRPC demands to be the last.
func router() *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{
		Name:       "envoy.filters.http.router",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{})},
	}
}
