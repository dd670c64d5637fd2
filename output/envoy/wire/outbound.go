package wire

import (
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Outbound is the listener of an address and port for connections to services.
type Outbound struct {
	Name, Address string
	Port          uint32
	BothFamilies  bool   // it listens on all addresses of IPv4 and IPv6
	Bound         bool   // it binds its port; otherwise connections are handed over to it
	Routes        string // the route configuration of plaintext HTTP; empty for none
	// BySNI and ByBlock are in order of their matches, and no two of a list have the same
	// match: Envoy would reject the listener.
	BySNI, ByBlock []Chain
	Rest           Target // of all other connections
	Passthrough    bool   // Rest is not a service
	Settings       *policy.Prepared
}

// Chain sends connections that match to a target.
type Chain struct {
	Match string // a server name, or a block of addresses
	Target
	Crowded bool // blocks of addresses take precedence
}

// Message returns the listener.
func (o *Outbound) Message() *listenerv3.Listener {
	m := &listenerv3.Listener{Name: o.Name, Address: SocketAddress(o.Address, o.Port), TrafficDirection: corev3.TrafficDirection_OUTBOUND}
	if o.BothFamilies {
		m.AdditionalAddresses = alsoIPv6(o.Port)
	}
	if !o.Bound {
		m.BindToPort = wrapperspb.Bool(false)
	}
	m.FilterChains = o.blockChains()
	for _, c := range o.BySNI {
		m.FilterChains = append(m.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: []string{c.Match}},
			Filters:          c.filters(o.Settings),
		})
	}
	if len(o.BySNI) > 0 {
		m.ListenerFilters = append(m.ListenerFilters, inspector(tlsInspector))
	}
	if o.Routes != "" {
		m.FilterChains = append(m.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{ApplicationProtocols: plaintextHTTP, TransportProtocol: rawBuffer},
			Filters:          []*listenerv3.Filter{filter(httpFilter, connectionManager(o.Name, o.Routes, o.Settings))},
		})
		m.ListenerFilters = append(m.ListenerFilters, inspector(httpInspector))
	}
	rest := &listenerv3.FilterChain{Filters: o.Rest.filters(o.Settings)}
	if o.Passthrough {
		rest.Name = names.PassthroughChain
	}
	if len(m.FilterChains) == 0 {
		m.FilterChains = []*listenerv3.FilterChain{rest}
	} else {
		m.DefaultFilterChain = rest
	}
	// A client may be silent at first. To stop waiting would break its protocol.
	m.ListenerFiltersTimeout = durationpb.New(0)
	m.ContinueOnListenerFiltersTimeout = true
	applySettings(m, o.Settings)
	return m
}

// blockChains returns the chains for blocks of addresses. Envoy matches addresses first, so
// these chains repeat all chains by server name.
func (o *Outbound) blockChains() (chains []*listenerv3.FilterChain) {
	var all []*corev3.CidrRange
	blocks := slices.Clone(o.ByBlock)
	slices.SortStableFunc(blocks, func(a, b Chain) int { return strings.Compare(a.Cluster, b.Cluster) })
	for len(blocks) > 0 {
		c := blocks[0]
		var ranges []*corev3.CidrRange
		for len(blocks) > 0 && blocks[0].Cluster == c.Cluster {
			ranges, blocks = append(ranges, cidr(blocks[0].Match)), blocks[1:]
		}
		all = append(all, ranges...)
		chains = append(chains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{PrefixRanges: ranges}, Filters: c.filters(o.Settings),
		})
		if o.Routes != "" {
			requests := connectionManager(o.Name, o.Routes, o.Settings)
			requests.EarlyHeaderMutationExtensions = []*corev3.TypedExtensionConfig{unnamedTo(c.Cluster)}
			chains = append(chains, &listenerv3.FilterChain{
				FilterChainMatch: &listenerv3.FilterChainMatch{PrefixRanges: ranges, ApplicationProtocols: plaintextHTTP, TransportProtocol: rawBuffer},
				Filters:          []*listenerv3.Filter{filter(httpFilter, requests)},
			}, &listenerv3.FilterChain{ // all other plaintext, which Envoy does not look for without this chain
				FilterChainMatch: &listenerv3.FilterChainMatch{PrefixRanges: ranges, TransportProtocol: rawBuffer}, Filters: c.filters(o.Settings),
			})
		}
	}
	for _, c := range o.BySNI {
		if len(all) > 0 && !c.Crowded {
			chains = append(chains, &listenerv3.FilterChain{
				FilterChainMatch: &listenerv3.FilterChainMatch{PrefixRanges: all, ServerNames: []string{c.Match}},
				Filters:          c.filters(o.Settings),
			})
		}
	}
	return chains
}

func cidr(block string) *corev3.CidrRange {
	p := netip.MustParsePrefix(block)
	return &corev3.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits()))} //nolint:gosec // 0 to 128
}

// VirtualOutbound returns the listener that connections are redirected to. It hands them
// over to the listener of their original address; all others go to the given cluster.
func VirtualOutbound(address string, bothFamilies, transparent bool, other string, settings *policy.Prepared) *listenerv3.Listener {
	m := &listenerv3.Listener{
		Name:             names.VirtualOutbound,
		Address:          SocketAddress(address, policy.OutboundPort),
		UseOriginalDst:   wrapperspb.Bool(true),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{
			{
				// A connection to this very port would be handed over to itself for ever.
				Name:             names.VirtualOutbound + "-blackhole",
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(policy.OutboundPort)},
				Filters:          toCluster(names.BlackHole, settings),
			},
			{Name: names.VirtualOutbound + "-catchall-tcp", Filters: toCluster(other, settings)},
		},
	}
	if bothFamilies {
		m.AdditionalAddresses = alsoIPv6(policy.OutboundPort)
	}
	if transparent {
		m.Transparent = wrapperspb.Bool(true)
	}
	applySettings(m, settings)
	return m
}
