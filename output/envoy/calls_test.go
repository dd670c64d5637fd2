package envoy

import (
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// caller makes calls through the listeners that a client is given, as an Envoy would lead
// them on. It knows nothing but the bytes.
type caller struct {
	t         failing
	world     world.World
	client    world.Client
	everyone  string // the address of the listener for all that have none
	listeners map[string]*listenerv3.Listener
	routes    map[string]*routev3.RouteConfiguration
}

func newCaller(t failing, w world.World, c world.Client, everyone string) *caller {
	return &caller{t, w, c, everyone, map[string]*listenerv3.Listener{}, map[string]*routev3.RouteConfiguration{}}
}

// call is what an application says first on a connection.
type call struct {
	address string
	port    uint32
	says    string // "GET", "hello" of TLS, or anything else
	host    string // that the request or the handshake names
}

// reaches is the cluster that a call goes to; empty if there is no listener.
func (c *caller) reaches(is call) string {
	m := c.listener(names.Socket(is.address, is.port))
	if m == nil {
		m = c.listener(names.Socket(c.everyone, is.port))
	}
	if m == nil {
		return ""
	}
	for _, f := range takes(m, is).GetFilters() {
		var requests hcmv3.HttpConnectionManager
		var connection tcpv3.TcpProxy
		if f.GetTypedConfig().UnmarshalTo(&connection) == nil {
			return connection.GetCluster()
		}
		if f.GetTypedConfig().UnmarshalTo(&requests) == nil {
			return routed(c.routesNamed(requests.GetRds().GetRouteConfigName()), is.host, blockOf(c.t, &requests))
		}
	}
	c.t.Fatal("a chain leads nowhere: ", m)
	return ""
}

func (c *caller) listener(name string) *listenerv3.Listener {
	m, known := c.listeners[name]
	if known {
		return m
	}
	if subject, ok := c.world.Find(c.world.View(ListenerType, c.client), ListenerType, name); ok {
		m, _ = message(c.t, subject.Encode().Joined().Body).(*listenerv3.Listener)
	}
	c.listeners[name] = m
	return m
}

func (c *caller) routesNamed(name string) *routev3.RouteConfiguration {
	m, known := c.routes[name]
	if known {
		return m
	}
	subject, ok := c.world.Find(c.world.View(RouteType, c.client), RouteType, name)
	if !ok {
		c.t.Fatal("a listener leads to routes that there are not: ", name)
	}
	m, _ = message(c.t, subject.Encode().Joined().Body).(*routev3.RouteConfiguration)
	c.routes[name] = m
	return m
}

// takes finds the chain of a call as Envoy does: by address, then by the host in the
// handshake, then by what the connection is. There is no way back from a step.
func takes(m *listenerv3.Listener, is call) *listenerv3.FilterChain {
	reads := func(name string) bool {
		return slices.ContainsFunc(m.GetListenerFilters(), func(f *listenerv3.ListenerFilter) bool { return f.GetName() == name })
	}
	host, transport, protocol := "", "raw_buffer", ""
	if is.says == "hello" && reads("envoy.filters.listener.tls_inspector") {
		host, transport = is.host, "tls"
	}
	if is.says == "GET" && reads("envoy.filters.listener.http_inspector") {
		protocol = "http/1.1"
	}
	left := nearest(m.GetFilterChains(), func(f *listenerv3.FilterChainMatch) (int, bool) { return inPrefixes(f, is.address) })
	left = nearest(left, func(f *listenerv3.FilterChainMatch) (int, bool) { return endsLike(f.GetServerNames(), host) })
	left = nearest(left, func(f *listenerv3.FilterChainMatch) (int, bool) {
		return len(f.GetTransportProtocol()), f.GetTransportProtocol() == "" || f.GetTransportProtocol() == transport
	})
	left = nearest(left, func(f *listenerv3.FilterChainMatch) (int, bool) {
		of := f.GetApplicationProtocols()
		return len(of), len(of) == 0 || slices.Contains(of, protocol)
	})
	if len(left) == 0 {
		return m.GetDefaultFilterChain()
	}
	return left[0]
}

// nearest keeps the chains that match best, of those that do.
func nearest(chains []*listenerv3.FilterChain, match func(*listenerv3.FilterChainMatch) (how int, ok bool)) (best []*listenerv3.FilterChain) {
	most := -1
	for _, chain := range chains {
		how, ok := match(chain.GetFilterChainMatch())
		if !ok || how < most {
			continue
		}
		if how > most {
			most, best = how, nil
		}
		best = append(best, chain)
	}
	return best
}

func inPrefixes(f *listenerv3.FilterChainMatch, address string) (longest int, ok bool) {
	for _, p := range f.GetPrefixRanges() {
		block := netip.PrefixFrom(netip.MustParseAddr(p.GetAddressPrefix()), int(p.GetPrefixLen().GetValue()))
		if block.Contains(netip.MustParseAddr(address)) {
			longest, ok = max(longest, 1+block.Bits()), true
		}
	}
	return longest, ok || len(f.GetPrefixRanges()) == 0
}

// endsLike is how much of a name some patterns match, whole or from a dot on.
func endsLike(patterns []string, name string) (how int, ok bool) {
	for _, pattern := range patterns {
		switch suffix, wildcard := strings.CutPrefix(pattern, "*"); {
		case pattern == name:
			return 1 << 16, true
		case wildcard && len(name) > len(suffix) && strings.HasSuffix(name, suffix):
			how, ok = max(how, 1+len(suffix)), true
		}
	}
	return how, ok || len(patterns) == 0
}

// blockOf is the cluster that a listener writes into the header of requests to a block.
func blockOf(t failing, m *hcmv3.HttpConnectionManager) string {
	for _, extension := range m.GetEarlyHeaderMutationExtensions() {
		var all headermutationv3.HeaderMutation
		if err := extension.GetTypedConfig().UnmarshalTo(&all); err != nil {
			t.Fatal(err)
		}
		for _, one := range all.GetMutations() {
			if header := one.GetAppend().GetHeader(); header.GetKey() == "x-isthmus-block-cluster" {
				return header.GetValue()
			}
		}
	}
	return ""
}

// routed is the cluster of a request for a host, with a header or without.
func routed(m *routev3.RouteConfiguration, host, header string) (cluster string) {
	most := -1
	for _, v := range m.GetVirtualHosts() {
		var domains []string
		for _, domain := range v.GetDomains() {
			domains = append(domains, strings.ToLower(domain))
		}
		how, ok := endsLike(domains, strings.ToLower(host))
		if !ok || how <= most {
			continue
		}
		most = how
		for _, r := range slices.Backward(v.GetRoutes()) {
			switch matchers := r.GetMatch().GetHeaders(); {
			case len(matchers) == 0:
				cluster = r.GetRoute().GetCluster()
			case header != "" && strings.HasPrefix(header, matchers[0].GetStringMatch().GetPrefix()):
				cluster = header
			}
		}
	}
	return cluster
}
