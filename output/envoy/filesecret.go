package envoy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/isthmus-mesh/isthmus/push"
)

// fileSecret tells an Envoy which files a secret is in. As part of a cluster they
// would be read once; of a secret, an Envoy watches the files' folders, and reads
// them again when one is moved there, as Kubernetes does with its volumes.
type fileSecret string

// findSecret returns one of those that the configuration names.
func (s *settings) findSecret(v View, name string) (push.Subject, bool) {
	return fileSecret(name), v.Kind == KindEnvoy && s.secrets[name]
}

// secretNames yields the names of all of them.
func (s *settings) secretNames(v View) iter.Seq[string] {
	if v.Kind != KindEnvoy {
		return nothing
	}
	return slices.Values(slices.Sorted(maps.Keys(s.secrets)))
}

// Slot implements [push.Subject].
func (s fileSecret) Slot() any { return s }

// Encode implements [push.Subject].
func (s fileSecret) Encode() push.Encoded {
	m := &tlsv3.Secret{Name: string(s)}
	if path, ok := strings.CutPrefix(m.Name, authorityFile); ok {
		m.Type = &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: file(path)}}
	} else {
		certificate, key, _ := strings.Cut(strings.TrimPrefix(m.Name, certificateFiles), fileSeparator)
		m.Type = &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: file(certificate), PrivateKey: file(key)}}
	}
	return encode(m.Name, secretURL, m)
}

func file(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}
