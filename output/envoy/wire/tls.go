package wire

import (
	"net/netip"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// TLS is the TLS of connections to a cluster.
type TLS struct {
	*policy.UpstreamTLS
	ServerName string
	Identities []string // of which a certificate must have one; none for the server name
	Within     string   // prefix of the accepted identities of the mesh without Identities; empty for any
	// Matched secures only the endpoints with mutualMetadata. Others are called in plaintext.
	Matched bool
}

// meshProtocols returns the ALPN protocols by which Istio's gateways and workloads recognize
// TLS of the mesh. Every offered protocol must be supported, because the peer may choose it.
func (v HTTPVersion) meshProtocols() []string {
	if v == HTTP2 {
		return []string{"istio", "h2"}
	}
	return []string{"istio"}
}

// secure configures TLS for the connections of a cluster.
func (t *TLS) secure(m *clusterv3.Cluster, http HTTPVersion) {
	if t == nil {
		return
	}
	socket := t.socket(http)
	if !t.Matched {
		m.TransportSocket = socket
		return
	}
	m.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{
		Name: "tlsMode-istio", TransportSocket: socket,
		Match: fields(map[string]*structpb.Value{"tlsMode": structpb.NewStringValue("istio")}),
	}}
}

// socket returns the TLS as a transport socket.
func (t *TLS) socket(http HTTPVersion) *corev3.TransportSocket {
	u := t.UpstreamTLS
	common := &tlsv3.CommonTlsContext{
		TlsParams: tlsParameters(),
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: t.accepted()},
				ValidationContextSdsSecretConfig: secretOverADS(u.AuthoritySecret()),
			},
		},
	}
	if u.Mutual() {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{secretOverADS(u.CertificateSecret())}
	}
	switch {
	case u.OfMesh():
		common.AlpnProtocols = http.meshProtocols()
	case http == HTTP2:
		common.AlpnProtocols = []string{"h2"}
	}
	return &corev3.TransportSocket{
		Name:       tlsSocket,
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(&tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: t.ServerName})},
	}
}

// accepted returns the matchers of the identities of a server.
func (t *TLS) accepted() []*tlsv3.SubjectAltNameMatcher {
	switch {
	case len(t.Identities) > 0:
		return matching(t.Identities)
	case t.OfMesh() && t.Within != "":
		return within(t.Within)
	case t.OfMesh() || t.ServerName == "":
		return nil
	default:
		return matching([]string{t.ServerName})
	}
}

// matching returns matchers that require one of the identities, each by its kind.
func matching(identities []string) (list []*tlsv3.SubjectAltNameMatcher) {
	for _, name := range identities {
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

// secretOverADS returns the source of a secret. Every secret with files that a cluster names
// exists. A certificate exists only for a client that proves its identity, so an Envoy waits
// for it with Envoy's time limit.
func secretOverADS(name string) *tlsv3.SdsSecretConfig {
	if name == names.OwnCertificate || name == names.Authorities {
		return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: fromADS()}
	}
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: awaited()}
}

// FileSecret returns a secret with the paths of its files. An Envoy watches the folders of a
// secret's files and rereads them when a file is moved there, as Kubernetes does with its
// volumes. Paths in a cluster would be read only once.
func FileSecret(name string) *tlsv3.Secret {
	m := &tlsv3.Secret{Name: name}
	if path, ok := policy.AuthorityFile(m.Name); ok {
		m.Type = &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: file(path)}}
	} else {
		certificate, key := policy.CertificateFiles(m.Name)
		m.Type = &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: file(certificate), PrivateKey: file(key)}}
	}
	return m
}

// CertificateSecret returns a secret with a certificate and its key; without the key if that is
// nil.
func CertificateSecret(name string, chain, key []byte) *tlsv3.Secret {
	certificate := &tlsv3.TlsCertificate{CertificateChain: inline(chain)}
	if key != nil {
		certificate.PrivateKey = inline(key)
	}
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate}}
}

// AuthoritySecret returns a secret with the authorities that a peer's certificate has to be of.
func AuthoritySecret(name string, authorities []byte) *tlsv3.Secret {
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_ValidationContext{
		ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(authorities)},
	}}
}

func inline(text []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: text}}
}

func file(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}
