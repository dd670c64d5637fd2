package envoy

import (
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// tlsFor is the TLS of connections to a service; nil for none. An API server, which
// each cluster has for itself, takes no TLS of the mesh.
func tlsFor(u *policy.UpstreamTLS, s catalog.ServiceDefinition) *policy.UpstreamTLS {
	if !u.On() || s.Traffic.ClusterLocal && u.OfMesh() {
		return nil
	}
	return u
}

// identitiesFor are the names of which a certificate must have one: those that are
// configured, or those of the service and the accounts of its endpoints, or the host.
// They are one text, by which subjects can be compared.
func identitiesFor(u *policy.UpstreamTLS, s *catalog.Service, endpoints *catalog.Endpoints, trustDomain string) string {
	names := slices.Clone(u.SubjectAltNames)
	if len(names) == 0 {
		names = s.SubjectAltNames.Slice()
		for account := range endpoints.Accounts() {
			names = append(names, accountName(account, s.Key.Namespace, trustDomain))
		}
	}
	slices.Sort(names)
	return strings.ToValidUTF8(strings.Join(slices.Compact(names), "\n"), string(utf8.RuneError))
}

// otherIdentities reports whether a change may be one of identities: the service has
// others, or an endpoint of the port came, went or changed with its account.
func otherIdentities(c catalog.ServiceChange, port uint32) bool {
	if !c.Old.SubjectAltNames.Equal(c.New.SubjectAltNames) {
		return true
	}
	for id := range c.Endpoints {
		if id.ServicePort != port {
			continue
		}
		before, was := c.Old.Endpoints(port).Get(id.Address, id.Port)
		after, is := c.New.Endpoints(port).Get(id.Address, id.Port)
		var old, now string
		if was {
			old = before.ServiceAccount
		}
		if is {
			now = after.ServiceAccount
		}
		if old != now {
			return true
		}
	}
	return false
}

// accountName is the name of a workload that runs under an account.
func accountName(account, namespace, trustDomain string) string {
	if strings.Contains(account, "://") {
		return account
	}
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/" + account
}

// serverName is the name that the Envoy says it wants to reach. A host with a wildcard
// is the name of none.
func (c cluster) serverName() string {
	switch host := c.key.Host; {
	case c.tls.OfMesh():
		name, _ := meshName(host, c.port, c.subset)
		return name
	case c.tls.SNI != "":
		return c.tls.SNI
	case strings.HasPrefix(host, "*"):
		return ""
	default:
		return host
	}
}

// meshProtocols have Istio's gateways and workloads tell TLS of the mesh from other. What
// else is offered would have to be spoken if the other side agreed on it.
func (v httpVersion) meshProtocols() []string {
	if v == http2 {
		return []string{"istio", "h2"}
	}
	return []string{"istio"}
}

// securedBy has the cluster's connections be TLS as the policy of its host says.
func (c cluster) securedBy(u *policy.UpstreamTLS, s *catalog.Service, trustDomain string) cluster {
	if u = tlsFor(u, s.ServiceDefinition); u != nil {
		c.tls, c.identities = u, identitiesFor(u, s, s.Endpoints(c.port), trustDomain)
	}
	return c
}

// secure makes a cluster's connections TLS.
func (c cluster) secure(m *clusterv3.Cluster) {
	u := c.tls
	if u == nil {
		return
	}
	sni := c.serverName()
	names := strings.FieldsFunc(c.identities, func(r rune) bool { return r == '\n' })
	if len(names) == 0 && sni != "" && !u.OfMesh() {
		names = []string{sni}
	}
	common := &tlsv3.CommonTlsContext{
		TlsParams: &tlsv3.TlsParameters{ // Envoy's own end at 1.2, and some servers begin at 1.3
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
			TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		},
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: matching(names)},
				ValidationContextSdsSecretConfig: secretOverADS(u.AuthoritySecret()),
			},
		},
	}
	if u.Mutual() {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{secretOverADS(u.CertificateSecret())}
	}
	switch {
	case u.OfMesh():
		common.AlpnProtocols = c.speaks.meshProtocols()
	case c.speaks == http2:
		common.AlpnProtocols = []string{"h2"}
	}
	m.TransportSocket = &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(&tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: sni})},
	}
}

// matching demands one of the names, each in the form of names that it has.
func matching(names []string) (list []*tlsv3.SubjectAltNameMatcher) {
	for _, name := range names {
		kind := tlsv3.SubjectAltNameMatcher_DNS
		switch _, err := netip.ParseAddr(name); {
		case strings.Contains(name, "://"):
			kind = tlsv3.SubjectAltNameMatcher_URI
		case err == nil:
			kind = tlsv3.SubjectAltNameMatcher_IP_ADDRESS
		case strings.Contains(name, "@"):
			kind = tlsv3.SubjectAltNameMatcher_EMAIL
		}
		list = append(list, &tlsv3.SubjectAltNameMatcher{
			SanType: kind, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
		})
	}
	return list
}

// secretOverADS says where a secret comes from. To wait for ever is right: every
// secret that a cluster names is there.
func secretOverADS(name string) *tlsv3.SdsSecretConfig {
	source := fromADS()
	source.InitialFetchTimeout = durationpb.New(0)
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: source}
}
