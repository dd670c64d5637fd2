package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// also lists the further addresses of a listener on all addresses of IPv4: those of IPv6, for
// an Envoy with addresses of both families. On loopback there are none, for the workload may
// listen there itself.
func (p proxy) also(address string, port uint32) []*listenerv3.AdditionalAddress {
	if p.family != both || address != anyIPv4 {
		return nil
	}
	return []*listenerv3.AdditionalAddress{{Address: socketAt(anyIPv6, port)}}
}

// bindTo is the address that an Envoy calls its workload from, by the family of the workload's
// address.
func (f family) bindTo() *corev3.BindConfig {
	source := func(address string) *corev3.SocketAddress {
		return &corev3.SocketAddress{Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 0}}
	}
	switch f {
	case ipv6:
		return &corev3.BindConfig{SourceAddress: source(sourceIPv6)}
	case both:
		return &corev3.BindConfig{SourceAddress: source(sourceIPv4), ExtraSourceAddresses: []*corev3.ExtraSourceAddress{{Address: source(sourceIPv6)}}}
	default:
		return &corev3.BindConfig{SourceAddress: source(sourceIPv4)}
	}
}
