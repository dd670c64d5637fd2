package policy

import (
	"iter"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
)

// UpstreamTLS decides how Envoys secure their connections to the endpoints of a host. The
// files are on the Envoy's machine. TLS of the mesh without files has the certificates that
// Isthmus serves.
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
	DisableTLS = "DISABLE"
	SimpleTLS  = "SIMPLE" // the endpoint shows a certificate
	MutualTLS  = "MUTUAL" // and so does the Envoy
	// IstioMutualTLS is mutual, between workloads of a mesh: gateways of networks know the
	// server name.
	IstioMutualTLS = "ISTIO_MUTUAL"
)

var tlsModes = []string{DisableTLS, SimpleTLS, MutualTLS, IstioMutualTLS}

// On reports whether connections are secured at all; nil secures none.
func (u *UpstreamTLS) On() bool { return u != nil && u.Mode != DisableTLS }

// Mutual reports whether the Envoy shows a certificate, too.
func (u *UpstreamTLS) Mutual() bool { return u.Mode == MutualTLS || u.Mode == IstioMutualTLS }

// OfMesh reports whether it is the TLS between workloads of a mesh.
func (u *UpstreamTLS) OfMesh() bool { return u != nil && u.Mode == IstioMutualTLS }

// FollowsAccounts reports whether the accepted names depend on the service accounts of the
// endpoints.
func (u *UpstreamTLS) FollowsAccounts() bool { return u.On() && len(u.SubjectAltNames) == 0 }

// Prefixes of the names of secrets that are files, as in Istio.
const (
	certificatePrefix = "file-cert:"
	authorityPrefix   = "file-root:"
	fileSeparator     = "~" // between a certificate and its key
)

// Served reports whether Isthmus serves the certificates, and no file has them.
func (u *UpstreamTLS) Served() bool {
	return u.OfMesh() && u.CAFile == "" && u.CertificateFile == "" && u.KeyFile == ""
}

// AuthoritySecret is the name of the secret with the authorities of the endpoints.
func (u *UpstreamTLS) AuthoritySecret() string {
	if u.Served() {
		return names.Authorities
	}
	return authorityPrefix + u.CAFile
}

// CertificateSecret is the name of the secret with the Envoy's own certificate and key.
func (u *UpstreamTLS) CertificateSecret() string {
	if u.Served() {
		return names.OwnCertificate
	}
	return certificatePrefix + u.CertificateFile + fileSeparator + u.KeyFile
}

// Secrets yields the names of the secrets that the connections need.
func (u *UpstreamTLS) Secrets() iter.Seq[string] {
	return func(yield func(string) bool) {
		if u.On() && yield(u.AuthoritySecret()) && u.Mutual() {
			yield(u.CertificateSecret())
		}
	}
}

// FileSecrets is Secrets without the ones that Isthmus serves.
func (u *UpstreamTLS) FileSecrets() iter.Seq[string] {
	if u.Served() {
		return func(func(string) bool) {}
	}
	return u.Secrets()
}

// AuthorityFile is the file of an AuthoritySecret; ok is false for any other secret.
func AuthorityFile(secret string) (path string, ok bool) {
	return strings.CutPrefix(secret, authorityPrefix)
}

// CertificateFiles are the files of a CertificateSecret.
func CertificateFiles(secret string) (certificate, key string) {
	certificate, key, _ = strings.Cut(strings.TrimPrefix(secret, certificatePrefix), fileSeparator)
	return certificate, key
}

func (u *UpstreamTLS) validate(f *faults, at string) {
	if !slices.Contains(tlsModes, u.Mode) {
		f.add(at+"mode", "%q is none of %s", u.Mode, strings.Join(tlsModes, ", "))
		return
	}
	mutual, served := u.Mutual(), u.Served()
	for _, file := range []struct {
		field, path string
		needed      bool
		why         string
	}{
		{"caFile", u.CAFile, u.Mode != DisableTLS && !served, "without it any certificate would do; give the Envoy's path to the authorities, such as /etc/ssl/certs/ca-certificates.crt"},
		{"certificateFile", u.CertificateFile, mutual && !served, u.Mode + " shows a certificate; give the Envoy's path to it, such as /etc/certs/tls.crt"},
		{"keyFile", u.KeyFile, mutual && !served, u.Mode + " shows a certificate; give the Envoy's path to its key, such as /etc/certs/tls.key"},
	} {
		switch {
		case file.needed && file.path == "":
			f.add(at+file.field, "missing; %s", file.why)
		case !file.needed && file.path != "":
			f.add(at+file.field, "is not used in mode %s; remove it, or choose another mode", u.Mode)
		case file.path != "" && !strings.HasPrefix(file.path, "/"):
			f.add(at+file.field, "%q is not an absolute path on the Envoy's machine; give one, such as /etc/certs/tls.crt", file.path)
		case strings.Contains(file.path, fileSeparator):
			f.add(at+file.field, "%q contains %q, which separates paths; rename the file", file.path, fileSeparator)
		}
	}
	if u.SNI != "" && u.Mode == IstioMutualTLS {
		f.add(at+"sni", "is not used in mode %s, in which Isthmus sets the SNI that gateways route by; remove it, or choose another mode", u.Mode)
	}
	if !names.IsServerName(u.SNI) || strings.Contains(u.SNI, "*") {
		f.add(at+"sni", "%q is not a server name of at most %d bytes; give one, such as www.example.com", u.SNI, names.LongestServerName)
	}
	for i, name := range u.SubjectAltNames {
		if names.HasBlanks(name) {
			f.add(at+"subjectAltNames", "%q contains a space or a control character; remove it", name)
		}
		if name == "" || slices.Contains(u.SubjectAltNames[:i], name) {
			f.add(at+"subjectAltNames", "%q is empty or a duplicate; remove it", name)
		}
	}
}
