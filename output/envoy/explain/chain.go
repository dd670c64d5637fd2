package explain

import (
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// opening is the begin of a connection, as listener filters see it.
type opening struct {
	address string
	port    uint32
	kind    openingKind
	host    string // in the request or in the handshake
}

// openingKind is the kind of the first bytes of a connection.
type openingKind uint8

const (
	request   openingKind = iota // of plaintext HTTP
	handshake                    // of TLS
	bytes                        // anything else
)

// String names the kind for a sentence.
func (k openingKind) String() string {
	switch k {
	case request:
		return "requests"
	case handshake:
		return "TLS handshakes"
	default:
		return "connections"
	}
}

// The listener filters that read from a connection.
const (
	tlsInspector  = "envoy.filters.listener.tls_inspector"
	httpInspector = "envoy.filters.listener.http_inspector"
)

// chainFor returns the filter chain that a listener chooses; nil if none matches. Envoy
// matches the address first, then the server name, the transport and the protocol. A step
// keeps the most specific matches, and is never taken back.
func chainFor(l *listenerv3.Listener, o opening) *listenerv3.FilterChain {
	reads := func(name string) bool {
		return slices.ContainsFunc(l.GetListenerFilters(), func(f *listenerv3.ListenerFilter) bool { return f.GetName() == name })
	}
	host, transport, protocol := "", "raw_buffer", ""
	if o.kind == handshake && reads(tlsInspector) {
		host, transport = o.host, "tls"
	}
	if o.kind == request && reads(httpInspector) {
		protocol = "http/1.1"
	}
	left := mostSpecific(l.GetFilterChains(), func(m *listenerv3.FilterChainMatch) (int, bool) {
		port := m.GetDestinationPort()
		return 1, port == nil || port.GetValue() == o.port
	})
	left = mostSpecific(left, func(m *listenerv3.FilterChainMatch) (int, bool) { return matchAddress(m, o.address) })
	left = mostSpecific(left, func(m *listenerv3.FilterChainMatch) (int, bool) { return matchName(m.GetServerNames(), host) })
	left = mostSpecific(left, func(m *listenerv3.FilterChainMatch) (int, bool) {
		wanted := m.GetTransportProtocol()
		return len(wanted), wanted == "" || wanted == transport
	})
	left = mostSpecific(left, func(m *listenerv3.FilterChainMatch) (int, bool) {
		wanted := m.GetApplicationProtocols()
		return len(wanted), len(wanted) == 0 || slices.Contains(wanted, protocol)
	})
	if len(left) == 0 {
		return l.GetDefaultFilterChain()
	}
	return left[0]
}

// mostSpecific keeps the chains with the highest of the values that match returns.
func mostSpecific(chains []*listenerv3.FilterChain, match func(*listenerv3.FilterChainMatch) (value int, ok bool)) (best []*listenerv3.FilterChain) {
	most := -1
	for _, chain := range chains {
		value, ok := match(chain.GetFilterChainMatch())
		if !ok || value < most {
			continue
		}
		if value > most {
			most, best = value, nil
		}
		best = append(best, chain)
	}
	return best
}

// matchAddress returns the length of the longest block that contains an address.
func matchAddress(m *listenerv3.FilterChainMatch, address string) (longest int, ok bool) {
	if len(m.GetPrefixRanges()) == 0 {
		return 0, true
	}
	at, err := netip.ParseAddr(address)
	if err != nil {
		return 0, false
	}
	for _, p := range m.GetPrefixRanges() {
		begin, err := netip.ParseAddr(p.GetAddressPrefix())
		if block := netip.PrefixFrom(begin, int(p.GetPrefixLen().GetValue())); err == nil && block.Contains(at) {
			longest, ok = max(longest, 1+block.Bits()), true
		}
	}
	return longest, ok
}

// exact is the value of a match of a whole name, which no suffix reaches.
const exact = 1 << 16

// matchName returns the length of the longest pattern that matches a name. No patterns match
// every name.
func matchName(patterns []string, name string) (longest int, ok bool) {
	if len(patterns) == 0 {
		return 0, true
	}
	for _, pattern := range patterns {
		switch suffix, wildcard := strings.CutPrefix(pattern, "*"); {
		case strings.EqualFold(pattern, name):
			return exact, true
		case wildcard && len(name) > len(suffix) && strings.EqualFold(name[len(name)-len(suffix):], suffix):
			longest, ok = max(longest, 1+len(suffix)), true
		}
	}
	return longest, ok
}

// virtualHostFor returns the virtual host of a request; nil if none matches.
func virtualHostFor(hosts []*routev3.VirtualHost, authority string) (best *routev3.VirtualHost) {
	most := -1
	for _, h := range hosts {
		if value, ok := matchName(h.GetDomains(), authority); ok && len(h.GetDomains()) > 0 && value > most {
			most, best = value, h
		}
	}
	return best
}

// clusterOf returns the cluster of the first route that takes any path, given the header that
// the listener wrote; empty if no route does.
func clusterOf(h *routev3.VirtualHost, header string) string {
	for _, r := range h.GetRoutes() {
		matchers := r.GetMatch().GetHeaders()
		if len(matchers) == 0 {
			return r.GetRoute().GetCluster()
		}
		if prefix := matchers[0].GetStringMatch().GetPrefix(); header != "" && strings.HasPrefix(header, prefix) {
			return header // the route takes its cluster from the header
		}
	}
	return ""
}

// kindOf returns the kind of connections that an encoded listener expects: requests if a
// chain routes them, handshakes if it inspects these, otherwise any bytes.
func kindOf(listener []byte) openingKind {
	var l listenerv3.Listener
	if !unpack(listener, &l) {
		return request
	}
	chains := l.GetFilterChains()
	if d := l.GetDefaultFilterChain(); d != nil {
		chains = append(slices.Clip(chains), d)
	}
	for _, c := range chains {
		for _, filter := range c.GetFilters() {
			if filter.GetTypedConfig().MessageIs((*hcmv3.HttpConnectionManager)(nil)) {
				return request
			}
		}
	}
	if slices.ContainsFunc(l.GetListenerFilters(), func(f *listenerv3.ListenerFilter) bool { return f.GetName() == tlsInspector }) {
		return handshake
	}
	return bytes
}
