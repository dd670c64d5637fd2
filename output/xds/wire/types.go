package wire

import (
	"slices"
	"strings"
)

// Names of types in the protocol.
const (
	ClusterURL     = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointURL    = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	MemberURL      = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint"
	ListenerURL    = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteURL       = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	ScopedRouteURL = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	RuntimeURL     = "type.googleapis.com/envoy.service.runtime.v3.Runtime"
	VirtualHostURL = "type.googleapis.com/envoy.config.route.v3.VirtualHost"
	SecretURL      = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// IsConfiguration reports whether a type is one of MCP-over-xDS, group/version/Kind. Control
// planes read these types; all others are for proxies.
func IsConfiguration(typeURL string) bool {
	parts := strings.Split(typeURL, "/")
	return len(parts) == 3 && !slices.Contains(parts, "") && parts[0] != "type.googleapis.com"
}

// SameKind reports whether two types of configuration differ in their version at most.
func SameKind(a, b string) bool { return groupKind(a) == groupKind(b) }

func groupKind(typeURL string) string {
	parts := strings.Split(typeURL, "/")
	return parts[0] + "/" + parts[2]
}
