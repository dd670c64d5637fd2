package envoy

import (
	"iter"
	"slices"
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

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// virtualInbound is the listener that connections to the workload are redirected to.
const virtualInbound = "virtualInbound"

// Names of Envoy's filters, and the transport protocol of handshakes.
const (
	originalDst = "envoy.filters.listener.original_dst"
	originalSrc = "envoy.filters.listener.original_src"
	tlsBuffer   = "tls"
)

// tproxyMark is of connections to the workload whose source is the client's own
// address. Istio's rules know them by it.
const tproxyMark = 1337

// findInboundListener returns the listener of an Envoy's own workload.
func findInboundListener(v View) (push.Subject, bool) {
	own := proxy{role: v.proxy.role, mode: v.proxy.mode, family: v.proxy.family}
	return inboundListener{View{settings: v.settings, proxy: own, inbound: v.inbound}}, v.inbound.taken
}

// inboundListener is [virtualInbound]. It says nothing of services, and of the ports of
// the workload only which there are and what they carry: it hardly ever changes.
type inboundListener struct {
	view View // without what does not matter here
}

// Slot implements [push.Subject].
func (l inboundListener) Slot() any { return l }

// Refers implements [push.Referrer].
func (l inboundListener) Refers(to string) iter.Seq[string] {
	if to != clusterURL {
		return nothing
	}
	list := []string{blackHoleCluster, inboundPassthrough}
	for number := range l.view.inbound.ports.all() {
		list = append(list, inboundClusterName(number))
	}
	return slices.Values(list)
}

// Encode implements [push.Subject]. Connections that the chains of a port do not
// describe go on to the workload by the default chain.
func (l inboundListener) Encode() push.Encoded {
	m := &listenerv3.Listener{
		Name:                virtualInbound,
		Address:             socketAt(l.view.proxy.everywhere(), policy.InboundPort),
		AdditionalAddresses: l.view.proxy.also(l.view.proxy.everywhere(), policy.InboundPort),
		TrafficDirection:    corev3.TrafficDirection_INBOUND,
		ListenerFilters:     l.filters(),
		FilterChains: []*listenerv3.FilterChain{
			{
				// A connection to this very port would be led to itself for ever.
				Name:             virtualInbound + "-blackhole",
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(policy.InboundPort)},
				Filters:          l.view.toTCP(blackHoleCluster),
			},
			{
				Name:             virtualInbound + "-catchall-http",
				FilterChainMatch: &listenerv3.FilterChainMatch{ApplicationProtocols: plaintextHTTP, TransportProtocol: rawBuffer},
				Filters:          l.view.toWorkload(inboundPassthrough, 0),
			},
		},
		DefaultFilterChain: &listenerv3.FilterChain{Name: virtualInbound, Filters: l.view.toTCP(inboundPassthrough)},
		// All chains of a port lead to one cluster, so a connection of a silent client may go on
		// before anything is known of it.
		ListenerFiltersTimeout:           durationpb.New(firstBytes),
		ContinueOnListenerFiltersTimeout: true,
	}
	for number, kind := range l.view.inbound.ports.all() {
		name := socketName(anyIPv4, number) // Istio's, whatever the address
		m.FilterChains = append(m.FilterChains, l.view.inboundChains(name, number, kind, false)...)
	}
	if l.view.proxy.mode == tproxy {
		m.Transparent = wrapperspb.Bool(true)
	}
	l.view.logUnmatched(m)
	return encode(virtualInbound, listenerURL, m)
}

// inboundChains are those of a port of the workload, in a listener of any ports or of
// this one alone. No two have one match.
func (v View) inboundChains(name string, number uint32, kind traffic, alone bool) []*listenerv3.FilterChain {
	cluster := inboundClusterName(number)
	chain := func(filters []*listenerv3.Filter, transport string, protocols ...string) *listenerv3.FilterChain {
		match := &listenerv3.FilterChainMatch{TransportProtocol: transport, ApplicationProtocols: protocols}
		if !alone {
			match.DestinationPort = wrapperspb.UInt32(number)
		}
		return &listenerv3.FilterChain{Name: name, FilterChainMatch: match, Filters: filters}
	}
	switch kind {
	case httpOnly:
		return []*listenerv3.FilterChain{
			chain(v.toWorkload(cluster, number), rawBuffer),
			chain(v.toTCP(cluster), tlsBuffer), // the workload ends it itself
		}
	case sniffed:
		return []*listenerv3.FilterChain{
			chain(v.toWorkload(cluster, number), rawBuffer, plaintextHTTP...),
			chain(v.toTCP(cluster), rawBuffer),
			chain(v.toTCP(cluster), tlsBuffer),
		}
	default:
		return []*listenerv3.FilterChain{chain(v.toTCP(cluster), "")}
	}
}

// firstBytes is how long inspectors wait for a client to speak. Where the server speaks
// first, each new connection waits as long.
const firstBytes = 100 * time.Millisecond

// filters find out where a connection was going, and what it carries. They are part of the
// listener and not of a chain. Envoy drains all connections if they change, so they do not
// depend on the ports of the workload.
func (l inboundListener) filters() []*listenerv3.ListenerFilter {
	list := []*listenerv3.ListenerFilter{{
		Name: originalDst, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(&originaldstv3.OriginalDst{})},
	}}
	if l.view.proxy.mode == tproxy {
		list = append(list, &listenerv3.ListenerFilter{
			Name: originalSrc, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(&originalsrcv3.OriginalSrc{Mark: tproxyMark})},
		})
	}
	for _, name := range []string{tlsInspector, httpInspector} {
		f := inspector(name)
		f.FilterDisabled = anyPort(serverFirstPorts[:])
		list = append(list, f)
	}
	return list
}

// anyPort is of connections to any of some ports, which are at least two.
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

// toWorkload has requests go to a cluster of the workload; port 0 is for any.
func (v View) toWorkload(cluster string, port uint32) []*listenerv3.Filter {
	action := toCluster(cluster)
	action.Timeout = durationpb.New(0)
	action.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{
		MaxStreamDuration: durationpb.New(0), GrpcTimeoutHeaderMax: durationpb.New(0),
	}
	routes := &routev3.RouteConfiguration{
		Name:             cluster,
		ValidateClusters: wrapperspb.Bool(false),
		VirtualHosts: []*routev3.VirtualHost{{
			Name: "inbound|http|" + portRoutes(port), Domains: []string{"*"},
			Routes: []*routev3.Route{{Name: "default", Match: anyPath(), Action: &routev3.Route_Route{Route: action}}},
		}},
	}
	return []*listenerv3.Filter{filter(httpFilter, &hcmv3.HttpConnectionManager{
		StatPrefix:     "inbound_" + socketName(anyIPv4, port) + ";",
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes},
		HttpFilters:    []*hcmv3.HttpFilter{router()},
		NormalizePath:  wrapperspb.Bool(true),
		// The workload says who answers, and not the Envoy beside it.
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		UseRemoteAddress:           wrapperspb.Bool(false),
		StreamIdleTimeout:          durationpb.New(0),
		UpgradeConfigs:             []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		AccessLog:                  v.accessLogs(),
		Tracing:                    v.tracing(),
	})}
}
