package wire

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnstablev3 "github.com/envoyproxy/go-control-plane/envoy/data/dns/v3"
	dnsfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/dns_filter/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

const (
	dnsFilter   = "envoy.filters.udp.dns_filter"
	dnsResolver = "envoy.network.dns_resolver.cares"
	dnsURL      = "type.googleapis.com/envoy.extensions.filters.udp.dns_filter.v3.DnsFilterConfig"
)

// Fields from the listener down to the table. Each nested message is written last, so that
// the table is the end of the listener.
const (
	listenerFilters = 9 // of Listener
	filterConfig    = 3 // of ListenerFilter
	serverConfig    = 2 // of DnsFilterConfig
	inlineTable     = 1 // of its ServerContextConfig
	virtualDomains  = 2 // of DnsTable
)

// Limits of lookups of unknown names. An application gives up on a nameserver after some 5 s
// and asks again. An earlier timeout would tell it that the name does not exist.
const (
	lookupTimeout = 10 * time.Second
	lookupsAtOnce = 4096
)

// DNSListener encodes the listener on loopback that answers lookups, up to its table of size
// bytes.
func DNSListener(name, loopback string, dns *policy.DNS, size int) []byte {
	address := SocketAddress(loopback, uint32(dns.Port)) //nolint:gosec // it is validated
	address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP

	body := []byte(nil)
	around := func(field protowire.Number, m proto.Message) {
		before, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			panic(invariant(name, err))
		}
		before = protowire.AppendTag(before, field, protowire.BytesType)
		before = protowire.AppendVarint(before, uint64(size)) //nolint:gosec // it is not negative
		body, size = append(before, body...), size+len(before)
	}
	around(inlineTable, &dnsfilterv3.DnsFilterConfig_ServerContextConfig{})
	around(serverConfig, &dnsfilterv3.DnsFilterConfig{
		StatPrefix: name, CaseInsensitive: true,
		ClientConfig: &dnsfilterv3.DnsFilterConfig_ClientContextConfig{
			ResolverTimeout: durationpb.New(lookupTimeout), MaxPendingLookups: lookupsAtOnce,
			TypedDnsResolverConfig: &corev3.TypedExtensionConfig{Name: dnsResolver, TypedConfig: packed(resolverConfig(dns))},
		},
	})
	body, size = append(appendAnyHead(nil, dnsURL, size), body...), size+anyHeadSize(dnsURL, size)
	around(filterConfig, &listenerv3.ListenerFilter{Name: dnsFilter})
	around(listenerFilters, &listenerv3.Listener{
		Name: name, Address: address, TrafficDirection: corev3.TrafficDirection_OUTBOUND,
	})
	return append(appendAnyHead(nil, ListenerURL, size), body...)
}

// resolverConfig makes the filter ask the nameservers for unchanged names. The application
// has already tried the search domains of its machine.
func resolverConfig(d *policy.DNS) *caresv3.CaresDnsResolverConfig {
	m := &caresv3.CaresDnsResolverConfig{DnsResolverOptions: &corev3.DnsResolverOptions{NoDefaultSearchDomain: true}}
	for _, server := range d.Nameservers() {
		at := SocketAddress(server.Addr().String(), uint32(server.Port()))
		at.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
		m.Resolvers = append(m.Resolvers, at)
	}
	return m
}

// DNSAnswers encodes the answers for some names as fields of the table.
func DNSAnswers(domains, addresses []string, ttl time.Duration) (text []byte) {
	for _, name := range domains {
		text = appendMessage(text, virtualDomains, &dnstablev3.DnsTable_DnsVirtualDomain{
			Name: name, AnswerTtl: durationpb.New(ttl),
			Endpoint: &dnstablev3.DnsTable_DnsEndpoint{EndpointConfig: &dnstablev3.DnsTable_DnsEndpoint_AddressList{
				AddressList: &dnstablev3.DnsTable_AddressList{Address: addresses},
			}},
		})
	}
	return text
}
