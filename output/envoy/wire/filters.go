package wire

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	httpinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Names of Envoy's filters.
const (
	httpFilter    = "envoy.filters.network.http_connection_manager"
	tcpFilter     = "envoy.filters.network.tcp_proxy"
	tlsInspector  = "envoy.filters.listener.tls_inspector"
	httpInspector = "envoy.filters.listener.http_inspector"
	originalDst   = "envoy.filters.listener.original_dst"
	originalSrc   = "envoy.filters.listener.original_src"
)

// Transport protocols as the TLS inspector names them.
const (
	rawBuffer = "raw_buffer"
	tlsBuffer = "tls"
)

// plaintextHTTP are the application protocols of plaintext HTTP, as the HTTP inspector names
// them.
var plaintextHTTP = []string{"http/1.0", "http/1.1", "h2c"}

// SocketAddress returns the address of a listener or an endpoint.
func SocketAddress(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// alsoIPv6 returns the further address of a listener on all IPv4 addresses that listens on
// all IPv6 addresses, too.
func alsoIPv6(port uint32) []*listenerv3.AdditionalAddress {
	return []*listenerv3.AdditionalAddress{{Address: SocketAddress(names.AnyIPv6, port)}}
}

// fromADS returns the source of resources on the same aggregated stream.
func fromADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// awaited returns a source that clients wait for without a time limit: every name is
// answered.
func awaited() *corev3.ConfigSource {
	source := fromADS()
	source.InitialFetchTimeout = durationpb.New(0)
	return source
}

func inspector(name string) *listenerv3.ListenerFilter {
	var settings proto.Message = &tlsinspectorv3.TlsInspector{}
	if name == httpInspector {
		settings = &httpinspectorv3.HttpInspector{}
	}
	return &listenerv3.ListenerFilter{Name: name, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(settings)}}
}

// Target is the cluster that connections or requests are sent to.
type Target struct {
	Cluster string
	Policy  *policy.Policy // of the cluster's host; nil if the cluster is not of a service
}

// filters returns the filters that send connections to the target.
func (t Target) filters(settings *policy.Prepared) []*listenerv3.Filter {
	return []*listenerv3.Filter{filter(tcpFilter, &tcpv3.TcpProxy{
		StatPrefix: t.Cluster, ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: t.Cluster},
		HashPolicy: tcpHashPolicy(t.Policy), AccessLog: accessLogs(settings),
	})}
}

// toCluster returns the filters that send connections to a cluster without a policy.
func toCluster(name string, settings *policy.Prepared) []*listenerv3.Filter {
	return Target{name, settings.Defaults}.filters(settings)
}

// connectionManager returns the filter that takes requests and routes them by a route
// configuration.
func connectionManager(listener, routes string, settings *policy.Prepared) *hcmv3.HttpConnectionManager {
	return &hcmv3.HttpConnectionManager{
		StatPrefix:        "outbound_" + listener + ";",
		RouteSpecifier:    &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: awaited(), RouteConfigName: routes}},
		HttpFilters:       []*hcmv3.HttpFilter{router()},
		NormalizePath:     wrapperspb.Bool(true),
		UseRemoteAddress:  wrapperspb.Bool(false),
		StreamIdleTimeout: durationpb.New(0),
		UpgradeConfigs:    []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		AccessLog:         accessLogs(settings),
		Tracing:           tracing(settings),
	}
}

func filter(name string, m proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(m)}}
}

// router returns the HTTP filter that gRPC requires to be the last one.
func router() *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{
		Name:       "envoy.filters.http.router",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{})},
	}
}
