package wire

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	originalsrcv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_src/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Carries is the kind of bytes that a port of the workload carries.
type Carries uint8

// The kinds. A TLS handshake is for the workload itself, so TLS is a connection like others.
const (
	Connections Carries = iota
	Requests            // of plaintext HTTP
	Either              // to be detected
)

// InboundPort is a port of the workload of a sidecar.
type InboundPort struct {
	Number uint32
	Carries
}

// tproxyMark marks connections to the workload that keep the client's source address. It is
// Istio's, for its iptables rules.
const tproxyMark = 1337

// VirtualInbound returns the listener that connections to the workload are redirected to.
// Connections that match no chain of a port go on to the workload by the default chain.
// ServerFirst are well-known ports of servers that speak first.
func VirtualInbound(address string, bothFamilies, transparent bool, ports []InboundPort, serverFirst []uint32, settings *policy.Prepared) *listenerv3.Listener {
	m := &listenerv3.Listener{
		Name:             names.VirtualInbound,
		Address:          SocketAddress(address, policy.InboundPort),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		ListenerFilters:  inboundFilters(transparent, serverFirst),
		FilterChains: []*listenerv3.FilterChain{
			{
				// A connection to this very port would be led to itself for ever.
				Name:             names.VirtualInbound + "-blackhole",
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(policy.InboundPort)},
				Filters:          toCluster(names.BlackHole, settings),
			},
			{
				Name:             names.VirtualInbound + "-catchall-http",
				FilterChainMatch: &listenerv3.FilterChainMatch{ApplicationProtocols: plaintextHTTP, TransportProtocol: rawBuffer},
				Filters:          toWorkload(names.InboundPassthrough, 0, settings),
			},
		},
		DefaultFilterChain: &listenerv3.FilterChain{Name: names.VirtualInbound, Filters: toCluster(names.InboundPassthrough, settings)},
		// All chains of a port lead to one cluster, so a connection of a silent client may go on
		// before anything is known of it.
		ListenerFiltersTimeout:           durationpb.New(firstBytes),
		ContinueOnListenerFiltersTimeout: true,
	}
	for _, p := range ports {
		name := names.Socket(names.AnyIPv4, p.Number) // Istio's, whatever the address
		m.FilterChains = append(m.FilterChains, inboundChains(name, p, false, settings)...)
	}
	if bothFamilies {
		m.AdditionalAddresses = alsoIPv6(policy.InboundPort)
	}
	if transparent {
		m.Transparent = wrapperspb.Bool(true)
	}
	applySettings(m, settings)
	return m
}

// BindListener returns the listener of one port of the workload at an explicit bind address, for
// a sidecar with INTERCEPTION_MODE NONE.
func BindListener(name, address string, p InboundPort, settings *policy.Prepared) *listenerv3.Listener {
	m := &listenerv3.Listener{
		Name:             name,
		Address:          SocketAddress(address, p.Number),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		FilterChains:     inboundChains(name, p, true, settings),
		// A client may be silent at first, as at all other listeners.
		ListenerFiltersTimeout:           durationpb.New(0),
		ContinueOnListenerFiltersTimeout: true,
	}
	switch p.Carries {
	case Requests:
		m.ListenerFilters = []*listenerv3.ListenerFilter{inspector(tlsInspector)}
	case Either:
		m.ListenerFilters = []*listenerv3.ListenerFilter{inspector(tlsInspector), inspector(httpInspector)}
	case Connections: // nothing is read: the server may speak first
	}
	applySettings(m, settings)
	return m
}

// inboundChains returns the chains of a port of the workload, in a listener of any ports or
// of only this port. No two chains have the same match.
func inboundChains(name string, p InboundPort, singlePort bool, settings *policy.Prepared) []*listenerv3.FilterChain {
	cluster := names.InboundCluster(p.Number)
	connections := toCluster(cluster, settings)
	chain := func(filters []*listenerv3.Filter, transport string, protocols ...string) *listenerv3.FilterChain {
		match := &listenerv3.FilterChainMatch{TransportProtocol: transport, ApplicationProtocols: protocols}
		if !singlePort {
			match.DestinationPort = wrapperspb.UInt32(p.Number)
		}
		return &listenerv3.FilterChain{Name: name, FilterChainMatch: match, Filters: filters}
	}
	switch p.Carries {
	case Requests:
		return []*listenerv3.FilterChain{
			chain(toWorkload(cluster, p.Number, settings), rawBuffer),
			chain(connections, tlsBuffer), // the workload ends it itself
		}
	case Either:
		return []*listenerv3.FilterChain{
			chain(toWorkload(cluster, p.Number, settings), rawBuffer, plaintextHTTP...),
			chain(connections, rawBuffer),
			chain(connections, tlsBuffer),
		}
	default:
		return []*listenerv3.FilterChain{chain(connections, "")}
	}
}

// firstBytes is how long inspectors wait for a client to speak. Where the server speaks
// first, each new connection waits as long.
const firstBytes = 100 * time.Millisecond

// inboundFilters returns the filters that find the destination and the protocol of a
// connection. They belong to the listener and not to a chain. Envoy drains all connections if they change, so they do not
// depend on the ports of the workload.
func inboundFilters(transparent bool, serverFirst []uint32) []*listenerv3.ListenerFilter {
	list := []*listenerv3.ListenerFilter{{
		Name: originalDst, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(&originaldstv3.OriginalDst{})},
	}}
	if transparent {
		list = append(list, &listenerv3.ListenerFilter{
			Name: originalSrc, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(&originalsrcv3.OriginalSrc{Mark: tproxyMark})},
		})
	}
	for _, name := range []string{tlsInspector, httpInspector} {
		f := inspector(name)
		f.FilterDisabled = anyPort(serverFirst)
		list = append(list, f)
	}
	return list
}

// anyPort matches connections to any of at least two ports.
func anyPort(numbers []uint32) *listenerv3.ListenerFilterChainMatchPredicate {
	set := &listenerv3.ListenerFilterChainMatchPredicate_MatchSet{}
	for _, n := range numbers {
		set.Rules = append(set.Rules, &listenerv3.ListenerFilterChainMatchPredicate{
			Rule: &listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange{
				DestinationPortRange: &typev3.Int32Range{Start: int32(n), End: int32(n) + 1}, //nolint:gosec // at most 65535
			},
		})
	}
	return &listenerv3.ListenerFilterChainMatchPredicate{Rule: &listenerv3.ListenerFilterChainMatchPredicate_OrMatch{OrMatch: set}}
}

// toWorkload returns the filters that send requests to a cluster of the workload. Port 0 is
// any port.
func toWorkload(cluster string, port uint32, settings *policy.Prepared) []*listenerv3.Filter {
	action := unlimitedTime(routeTo(cluster))
	routes := &routev3.RouteConfiguration{
		Name:             cluster,
		ValidateClusters: wrapperspb.Bool(false),
		VirtualHosts: []*routev3.VirtualHost{{
			Name: "inbound|http|" + names.PortRoutes(port), Domains: []string{"*"},
			Routes: []*routev3.Route{{Name: "default", Match: anyPath(), Action: &routev3.Route_Route{Route: action}}},
		}},
	}
	return []*listenerv3.Filter{filter(httpFilter, &hcmv3.HttpConnectionManager{
		StatPrefix:     "inbound_" + names.Socket(names.AnyIPv4, port) + ";",
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes},
		HttpFilters:    []*hcmv3.HttpFilter{router()},
		NormalizePath:  wrapperspb.Bool(true),
		// The server header is the workload's, and not that of its sidecar.
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		UseRemoteAddress:           wrapperspb.Bool(false),
		StreamIdleTimeout:          durationpb.New(0),
		UpgradeConfigs:             []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		AccessLog:                  accessLogs(settings),
		Tracing:                    tracing(settings),
	})}
}
