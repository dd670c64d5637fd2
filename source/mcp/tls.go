package mcp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/isthmus-mesh/isthmus/internal/certs"
)

// TLS says what is shown to a peer, and what is demanded of it.
type TLS struct {
	// CAFile has the authorities of the peer: of a peer that is dialled, the system's
	// if empty; of one that dials, its certificate is not asked for if empty.
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

func (t TLS) enabled() bool { return t != TLS{} }

func (t TLS) validate(listens bool) error {
	var errs []error
	if t.KeyFile == "" && (t.CertFile != "" || listens && t.enabled()) {
		errs = append(errs, errors.New("tls.keyFile: missing; name the key of the certificate"))
	}
	if t.CertFile == "" && (t.KeyFile != "" || listens && t.enabled()) {
		errs = append(errs, errors.New("tls.certFile: missing; name the certificate that is shown to the peer"))
	}
	return errors.Join(errs...)
}

// client is for dialling. The certificate is read anew at every handshake, so that it
// can be rotated; authorities are read with every run of the source.
func (t TLS) client() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.caFile: %w; create it, or name another", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls.caFile: %q holds no certificate in PEM form", t.CAFile)
		}
	}
	if t.CertFile == "" {
		return config, nil
	}
	if _, err := t.pair(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.pair() }
	return config, nil
}

func (t TLS) pair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls.certFile: %w; name a certificate and the key that belongs to it, in PEM form", err)
	}
	return &pair, nil
}

// server is for listening.
func (t TLS) server(log *slog.Logger) (*certs.Keeper, error) {
	keeper, err := certs.New(certs.Files{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.CAFile}, log)
	if bad, ok := errors.AsType[*certs.FileError](err); ok && bad.Field == "clientCAFile" {
		return nil, fmt.Errorf("tls.caFile: %s", bad.Reason)
	}
	if err != nil {
		return nil, fmt.Errorf("tls.%w", err)
	}
	return keeper, nil
}
