package envoy

import (
	"strings"
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
	"github.com/isthmus-mesh/isthmus/push"
)

const (
	dnsFilter   = "envoy.filters.udp.dns_filter"
	dnsResolver = "envoy.network.dns_resolver.cares"
	dnsURL      = "type.googleapis.com/envoy.extensions.filters.udp.dns_filter.v3.DnsFilterConfig"
)

// Fields on the way from the listener to the table. What is nested in each is written
// last, so that the table is the end of the whole.
const (
	listenerFilters = 9 // of Listener
	filterConfig    = 3 // of ListenerFilter
	serverConfig    = 2 // of DnsFilterConfig
	inlineTable     = 1 // of its ServerContextConfig
	virtualDomains  = 2 // of DnsTable
)

// What the filter does with the names that it does not know. An application gives up on
// a nameserver after some 5 s and asks again. It should not be answered before then that
// there is no such name, because nobody has answered.
const (
	lookupTimeout = 10 * time.Second
	lookupsAtOnce = 4096
)

// encode puts the listener around its table.
func (l dnsListener) encode(table *pieces) push.Encoded {
	dns := l.view.settings.DNS
	loopback := proxy{mode: none, family: l.view.proxy.family}.shared()
	address := socketAt(loopback, uint32(dns.Port)) //nolint:gosec // it is validated
	address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP

	body, size := []byte(nil), table.size
	around := func(field protowire.Number, m proto.Message) {
		before, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			panic(invariant(l.name, err))
		}
		before = protowire.AppendTag(before, field, protowire.BytesType)
		before = protowire.AppendVarint(before, uint64(size)) //nolint:gosec // it is not negative
		body, size = append(before, body...), size+len(before)
	}
	around(inlineTable, &dnsfilterv3.DnsFilterConfig_ServerContextConfig{})
	around(serverConfig, &dnsfilterv3.DnsFilterConfig{
		StatPrefix: l.name, CaseInsensitive: true,
		ClientConfig: &dnsfilterv3.DnsFilterConfig_ClientContextConfig{
			ResolverTimeout: durationpb.New(lookupTimeout), MaxPendingLookups: lookupsAtOnce,
			TypedDnsResolverConfig: &corev3.TypedExtensionConfig{Name: dnsResolver, TypedConfig: packed(resolverConfig(dns))},
		},
	})
	body, size = append(appendAnyHead(nil, dnsURL, size), body...), size+anyHeadSize(dnsURL, size)
	around(filterConfig, &listenerv3.ListenerFilter{Name: dnsFilter})
	around(listenerFilters, &listenerv3.Listener{
		Name: l.name, Address: address, TrafficDirection: corev3.TrafficDirection_OUTBOUND,
	})
	body = append(appendAnyHead(nil, listenerURL, size), body...)
	return push.Encoded{Name: l.name, Version: versionOf(body).Plus(table.sum), Body: body, Tail: table}
}

// resolverConfig asks the nameservers for names as they are. The application has tried the
// domains of its machine already.
func resolverConfig(d *policy.DNS) *caresv3.CaresDnsResolverConfig {
	m := &caresv3.CaresDnsResolverConfig{DnsResolverOptions: &corev3.DnsResolverOptions{NoDefaultSearchDomain: true}}
	for _, server := range d.Nameservers() {
		at := socketAt(server.Addr().String(), uint32(server.Port()))
		at.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
		m.Resolvers = append(m.Resolvers, at)
	}
	return m
}

// fragmentOf is what is answered for names of a service. It is made once for all views
// that are given the same.
func (h *namedHost) fragmentOf(names, addresses []string, ttl time.Duration) *fragment {
	key := strings.Join(names, " ") + "\n" + strings.Join(addresses, " ")
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.made[key]
	if f == nil {
		if h.made == nil {
			h.made = map[string]*fragment{}
		}
		f = answersFor(names, addresses, ttl)
		h.made[key] = f
	}
	return f
}

func answersFor(names, addresses []string, ttl time.Duration) *fragment {
	var text []byte
	for _, name := range names {
		text = appendMessage(text, virtualDomains, &dnstablev3.DnsTable_DnsVirtualDomain{
			Name: name, AnswerTtl: durationpb.New(ttl),
			Endpoint: &dnstablev3.DnsTable_DnsEndpoint{EndpointConfig: &dnstablev3.DnsTable_DnsEndpoint_AddressList{
				AddressList: &dnstablev3.DnsTable_AddressList{Address: addresses},
			}},
		})
	}
	return &fragment{text, versionOf(text)}
}
