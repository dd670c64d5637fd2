package xds

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// credentials reads the authorities, which happens with every run of the source. The
// certificate is read at every handshake, so that it can be rotated.
func (t TLS) credentials() (credentials.TransportCredentials, error) {
	if t == (TLS{}) {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.caFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls.caFile: %s has no certificate in PEM form", t.CAFile)
		}
	}
	if t.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("tls.certFile: %w", err)
			}
			return &pair, nil
		}
	}
	return credentials.NewTLS(config), nil
}

// rootNamespace is where control planes are unless their certificate says otherwise.
const rootNamespace = "istio-system"

// namespace is that of the identity that is shown: servers want a client to say no other.
func (t TLS) namespace() string {
	if t.CertFile == "" {
		return rootNamespace
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return rootNamespace // the handshake says what is wrong
	}
	_, namespace, err := spiffe.Read(pair.Leaf)
	if err != nil || namespace == "" {
		return rootNamespace
	}
	return namespace
}
