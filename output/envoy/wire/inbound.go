package wire

import (
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
	Mutual policy.Mutual
}

// Inbound are the connections that are redirected to a sidecar.
type Inbound struct {
	Address      string
	BothFamilies bool
	Transparent  bool
	Ports        []InboundPort
	Others       policy.Mutual // of all other ports
	// ServerFirst are well-known ports of servers that speak first.
	ServerFirst []uint32
}

// tproxyMark marks connections to the workload that keep the client's source address. It is
// Istio's, for its iptables rules.
const tproxyMark = 1337

// VirtualInbound returns the listener that connections to the workload are redirected to.
// Connections that match no chain of a port go on to the workload by the default chain, or end
// there in the mode STRICT.
func VirtualInbound(in Inbound, settings *policy.Prepared) *listenerv3.Listener {
	m := &listenerv3.Listener{
		Name:             names.VirtualInbound,
		Address:          SocketAddress(in.Address, policy.InboundPort),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		ListenerFilters:  inboundFilters(in.Transparent, quiet(in.ServerFirst, in.Ports, in.Others)),
		FilterChains: []*listenerv3.FilterChain{
			{
				// A connection to this very port would be led to itself for ever.
				Name:             names.VirtualInbound + "-blackhole",
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(policy.InboundPort)},
				Filters:          toCluster(names.BlackHole, settings),
			},
		},
		// A connection of a silent client may go on before anything is known of it: to the
		// workload, or nowhere in the mode STRICT.
		ListenerFiltersTimeout:           durationpb.New(in.firstBytes()),
		ContinueOnListenerFiltersTimeout: true,
	}
	m.FilterChains = append(m.FilterChains, otherChains(in.Others, settings)...)
	m.DefaultFilterChain = &listenerv3.FilterChain{Name: names.VirtualInbound, Filters: toCluster(otherCluster(in.Others), settings)}
	for _, p := range in.Ports {
		name := names.Socket(names.AnyIPv4, p.Number) // Istio's, whatever the address
		m.FilterChains = append(m.FilterChains, inboundChains(name, p, false, settings)...)
	}
	if in.BothFamilies {
		m.AdditionalAddresses = alsoIPv6(policy.InboundPort)
	}
	if in.Transparent {
		m.Transparent = wrapperspb.Bool(true)
	}
	applySettings(m, settings)
	return m
}

// otherChains returns the chains of ports that no service has.
func otherChains(mode policy.Mutual, settings *policy.Prepared) []*listenerv3.FilterChain {
	name := names.VirtualInbound
	chain := func(filters []*listenerv3.Filter, transport string, protocols ...string) *listenerv3.FilterChain {
		return &listenerv3.FilterChain{Name: name, FilterChainMatch: &listenerv3.FilterChainMatch{ApplicationProtocols: protocols, TransportProtocol: transport}, Filters: filters}
	}
	requests, connections := toWorkload(names.InboundPassthrough, 0, settings), toCluster(names.InboundPassthrough, settings)
	list := mutualChains(InboundPort{Carries: Either, Mutual: mode}, chain, requests, connections, settings)
	if mode == policy.Strict {
		return list
	}
	name += "-catchall-http"
	return append(list, chain(requests, rawBuffer, plaintextHTTP...))
}

// otherCluster is the cluster of connections that match no chain.
func otherCluster(mode policy.Mutual) string {
	if mode == policy.Strict {
		return names.BlackHole
	}
	return names.InboundPassthrough
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
		if p.Mutual != policy.Plaintext {
			m.ListenerFilters = []*listenerv3.ListenerFilter{inspector(tlsInspector)}
		}
	}
	if p.Mutual == policy.Permissive && p.Carries == Connections { // the server may speak first here, too
		m.ListenerFiltersTimeout = durationpb.New(firstHandshake)
	}
	applySettings(m, settings)
	return m
}

// inboundChains returns the chains of a port of the workload, in a listener of any ports or
// of only this port. No two chains have the same match.
func inboundChains(name string, p InboundPort, singlePort bool, settings *policy.Prepared) []*listenerv3.FilterChain {
	cluster := names.InboundCluster(p.Number)
	chain := func(filters []*listenerv3.Filter, transport string, protocols ...string) *listenerv3.FilterChain {
		match := &listenerv3.FilterChainMatch{TransportProtocol: transport, ApplicationProtocols: protocols}
		if !singlePort {
			match.DestinationPort = wrapperspb.UInt32(p.Number)
		}
		return &listenerv3.FilterChain{Name: name, FilterChainMatch: match, Filters: filters}
	}
	connections := toCluster(cluster, settings)
	var requests []*listenerv3.Filter
	if p.Carries != Connections {
		requests = toWorkload(cluster, p.Number, settings)
	}
	mutual := mutualChains(p, chain, requests, connections, settings)
	switch {
	case p.Mutual == policy.Strict && singlePort:
		return mutual
	case p.Mutual == policy.Strict: // the default chain is for plaintext, too
		return append(mutual, chain(toCluster(names.BlackHole, settings), rawBuffer))
	case p.Carries == Requests:
		return append(mutual, chain(requests, rawBuffer), chain(connections, tlsBuffer)) // the workload ends TLS itself
	case p.Carries == Either:
		return append(mutual, chain(requests, rawBuffer, plaintextHTTP...), chain(connections, rawBuffer), chain(connections, tlsBuffer))
	case p.Mutual == policy.Permissive: // Envoy does not look at a chain of any transport once one of TLS has the port
		return append(mutual, chain(connections, rawBuffer), chain(connections, tlsBuffer))
	default:
		return []*listenerv3.FilterChain{chain(connections, "")}
	}
}

// firstBytes is how long inspectors wait for a client to speak. Where the server speaks
// first, each new connection waits as long.
const firstBytes = 100 * time.Millisecond

// firstHandshake is firstBytes where mutual TLS is taken. A handshake that comes later would be
// taken for plaintext.
const firstHandshake = time.Second

func (in Inbound) firstBytes() time.Duration {
	takes := func(p InboundPort) bool { return p.Mutual != policy.Plaintext }
	if in.Others != policy.Plaintext || slices.ContainsFunc(in.Ports, takes) {
		return firstHandshake
	}
	return firstBytes
}

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

// anyPort matches connections to any of the ports; nil without ports.
func anyPort(numbers []uint32) *listenerv3.ListenerFilterChainMatchPredicate {
	set := &listenerv3.ListenerFilterChainMatchPredicate_MatchSet{}
	for _, n := range numbers {
		set.Rules = append(set.Rules, &listenerv3.ListenerFilterChainMatchPredicate{
			Rule: &listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange{
				DestinationPortRange: &typev3.Int32Range{Start: int32(n), End: int32(n) + 1}, //nolint:gosec // at most 65535
			},
		})
	}
	switch len(set.GetRules()) {
	case 0:
		return nil
	case 1: // Envoy rejects a choice from one
		return set.GetRules()[0]
	default:
		return &listenerv3.ListenerFilterChainMatchPredicate{Rule: &listenerv3.ListenerFilterChainMatchPredicate_OrMatch{OrMatch: set}}
	}
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
