package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	"github.com/isthmus-mesh/isthmus/internal/bounded"
)

// client returns the HTTP client for the admin API. It follows no redirection, which could
// send a token to an unknown host.
func (f *adminFlags) client() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // as net/http documents
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName}
	if f.caFile != "" {
		text, err := bounded.File(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s has no certificate in PEM form", f.caFile)
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay}, nil
}
