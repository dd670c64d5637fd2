package wire

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Protocols that callers of the mesh offer in a handshake, as Istio names them. The TLS of an
// application offers none of them. A caller that offers one of meshRequests sends HTTP.
var (
	meshProtocols = []string{"istio", "istio-peer-exchange"}
	meshRequests  = []string{"istio-http/1.0", "istio-http/1.1", "istio-h2"}
)

// tlsSocket is the name of Envoy's transport socket of TLS.
const tlsSocket = "envoy.transport_sockets.tls"

// tlsParameters are the versions of TLS. Envoy's default maximum of clients is 1.2, and some
// servers require 1.3.
func tlsParameters() *tlsv3.TlsParameters {
	return &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
		TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
	}
}

// mutualSocket returns the TLS of connections to a workload: the caller must show a certificate
// of the trust domain. It is the same in every chain.
func mutualSocket(trustDomain string) *corev3.TransportSocket {
	common := &tlsv3.CommonTlsContext{
		TlsParams:                      tlsParameters(),
		AlpnProtocols:                  []string{"h2", "http/1.1"},
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{secretOverADS(names.OwnCertificate)},
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: within("spiffe://" + trustDomain + "/")},
				ValidationContextSdsSecretConfig: secretOverADS(names.Authorities),
			},
		},
	}
	return &corev3.TransportSocket{Name: tlsSocket, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: packed(&tlsv3.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(true)}),
	}}
}

// within matches the identities that begin with a prefix.
func within(prefix string) []*tlsv3.SubjectAltNameMatcher {
	return []*tlsv3.SubjectAltNameMatcher{{
		SanType: tlsv3.SubjectAltNameMatcher_URI, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}},
	}}
}

// mutualChains returns the chains of a port for mutual TLS. In the mode STRICT the callers need
// no protocol of the mesh. The chains of the mode PERMISSIVE are among its chains, so that a
// change to STRICT drains no connection of mutual TLS.
func mutualChains(p InboundPort, chain chainMaker, requests, connections []*listenerv3.Filter, settings *policy.Prepared) (list []*listenerv3.FilterChain) {
	if p.Mutual == policy.Plaintext {
		return nil
	}
	socket := mutualSocket(settings.TrustDomain)
	add := func(filters []*listenerv3.Filter, protocols ...string) {
		c := chain(filters, tlsBuffer, protocols...)
		c.TransportSocket = socket
		list = append(list, c)
	}
	rest := connections
	switch p.Carries {
	case Requests: // Envoy finds the version of HTTP by itself
		rest = requests
		add(requests, slices.Concat(meshProtocols, meshRequests)...)
	case Either: // nothing detects requests inside of TLS, so the protocol tells
		add(requests, meshRequests...)
		add(connections, meshProtocols...)
	default:
		add(connections, slices.Concat(meshProtocols, meshRequests)...)
	}
	if p.Mutual == policy.Strict {
		add(rest)
	}
	return list
}

// chainMaker makes a chain of filters for connections of a transport protocol and of some
// application protocols.
type chainMaker = func(filters []*listenerv3.Filter, transport string, protocols ...string) *listenerv3.FilterChain

// quiet lists the ports of servers that speak first where nothing is read. With mutual TLS the
// client speaks first.
func quiet(serverFirst []uint32, ports []InboundPort, others policy.Mutual) (list []uint32) {
	for _, number := range serverFirst {
		mode := others
		for _, p := range ports {
			if p.Number == number {
				mode = p.Mutual
			}
		}
		if mode == policy.Plaintext {
			list = append(list, number)
		}
	}
	return list
}

// mutualMetadata is LbEndpoint.metadata of an endpoint that is called by mutual TLS: its
// envoy.transport_socket_match has the field tlsMode with the value istio.
const mutualMetadata = "\x1a\x36" + "\x0a\x34" + "\x0a\x1cenvoy.transport_socket_match" +
	"\x12\x14" + "\x0a\x12" + "\x0a\x07tlsMode" + "\x12\x07" + "\x1a\x05istio"
