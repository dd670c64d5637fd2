package envoy

import (
	"iter"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// UpstreamTLS is how Envoys secure their connections to the endpoints of a host. The
// files are on the Envoy's machine: no key passes through Isthmus.
type UpstreamTLS struct {
	Mode            string   `json:"mode"`
	CertificateFile string   `json:"certificateFile"`
	KeyFile         string   `json:"keyFile"`
	CAFile          string   `json:"caFile"`
	SNI             string   `json:"sni"`
	SubjectAltNames []string `json:"subjectAltNames"`
}

// The modes of TLS, as Istio has them.
const (
	disableTLS = "DISABLE"
	simpleTLS  = "SIMPLE" // the endpoint shows a certificate
	mutualTLS  = "MUTUAL" // and so does the Envoy
	// istioTLS is mutual, between workloads of a mesh: by a name that gateways of
	// networks know.
	istioTLS = "ISTIO_MUTUAL"
)

var tlsModes = []string{disableTLS, simpleTLS, mutualTLS, istioTLS}

func (u *UpstreamTLS) validate(f *faults, at string) {
	if !slices.Contains(tlsModes, u.Mode) {
		f.add(at+"mode", "%q is none of %s", u.Mode, strings.Join(tlsModes, ", "))
		return
	}
	mutual := u.mutual()
	for _, file := range []struct {
		field, path string
		needed      bool
		why         string
	}{
		{"caFile", u.CAFile, u.Mode != disableTLS, "without it any certificate would do; give the Envoy's path to the authorities, such as /etc/ssl/certs/ca-certificates.crt"},
		{"certificateFile", u.CertificateFile, mutual, u.Mode + " shows a certificate; give the Envoy's path to it, such as /etc/certs/tls.crt"},
		{"keyFile", u.KeyFile, mutual, u.Mode + " shows a certificate; give the Envoy's path to its key, such as /etc/certs/tls.key"},
	} {
		switch {
		case file.needed && file.path == "":
			f.add(at+file.field, "missing; %s", file.why)
		case !file.needed && file.path != "":
			f.add(at+file.field, "is not used in mode %s; remove it, or choose another mode", u.Mode)
		case file.path != "" && !strings.HasPrefix(file.path, "/"):
			f.add(at+file.field, "%q is no path from the root of the Envoy's machine; give such as /etc/certs/tls.crt", file.path)
		case strings.Contains(file.path, fileSeparator):
			f.add(at+file.field, "%q has a %q in it, which stands between paths; rename the file", file.path, fileSeparator)
		}
	}
	if u.SNI != "" && u.Mode == istioTLS {
		f.add(at+"sni", "is not used in mode %s, in which gateways know ports by name; remove it, or choose another mode", u.Mode)
	}
	if len(u.SNI) > longestSNI || strings.ContainsFunc(u.SNI, isNotOfNames) || strings.Contains(u.SNI, "*") {
		f.add(at+"sni", "%q is no name of at most %d bytes; give that of the server, such as www.example.com", u.SNI, longestSNI)
	}
	for i, name := range u.SubjectAltNames {
		if strings.ContainsFunc(name, isNotOfNames) {
			f.add(at+"subjectAltNames", "%q has a space or a control character in it; remove that", name)
		}
		if name == "" || slices.Contains(u.SubjectAltNames[:i], name) {
			f.add(at+"subjectAltNames", "%q is empty or there twice; remove it", name)
		}
	}
}

// longestSNI is how long Envoy takes the name in a handshake.
const longestSNI = 255

func isNotOfNames(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }

// on reports whether connections are secured at all.
func (u *UpstreamTLS) on() bool { return u != nil && u.Mode != disableTLS }

// mutual reports whether the Envoy shows a certificate, too.
func (u *UpstreamTLS) mutual() bool { return u.Mode == mutualTLS || u.Mode == istioTLS }

// ofMesh reports whether it is that between workloads of a mesh.
func (u *UpstreamTLS) ofMesh() bool { return u != nil && u.Mode == istioTLS }

// forService is the TLS of connections to a service; nil for none. An API server, which
// each cluster has for itself, takes no TLS of the mesh.
func (u *UpstreamTLS) forService(s catalog.ServiceDefinition) *UpstreamTLS {
	if !u.on() || s.Traffic.ClusterLocal && u.ofMesh() {
		return nil
	}
	return u
}

// Secrets that are files are named as Istio names them.
const (
	certificateFiles = "file-cert:"
	authorityFile    = "file-root:"
	fileSeparator    = "~" // between a certificate and its key
)

// secrets yields the names of the secrets that the connections need.
func (u *UpstreamTLS) secrets() iter.Seq[string] {
	return func(yield func(string) bool) {
		if u.on() && yield(authorityFile+u.CAFile) && u.mutual() {
			yield(certificateFiles + u.CertificateFile + fileSeparator + u.KeyFile)
		}
	}
}

// identities are the names of which a certificate must have one: those that are
// configured, or those of the service and the accounts of its endpoints, or the host.
// They are one text, by which subjects can be compared.
func (u *UpstreamTLS) identities(s *catalog.Service, endpoints *catalog.Endpoints, trustDomain string) string {
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

// followsAccounts reports whether the identities depend on the endpoints.
func (u *UpstreamTLS) followsAccounts() bool { return u.on() && len(u.SubjectAltNames) == 0 }

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
	case c.tls.ofMesh():
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
func (c cluster) securedBy(u *UpstreamTLS, s *catalog.Service, trustDomain string) cluster {
	if u = u.forService(s.ServiceDefinition); u != nil {
		c.tls, c.identities = u, u.identities(s, s.Endpoints(c.port), trustDomain)
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
	if len(names) == 0 && sni != "" && !u.ofMesh() {
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
				ValidationContextSdsSecretConfig: secretOverADS(authorityFile + u.CAFile),
			},
		},
	}
	if u.mutual() {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{secretOverADS(certificateFiles + u.CertificateFile + fileSeparator + u.KeyFile)}
	}
	switch {
	case u.ofMesh():
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
