package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Client is the TLS configuration for dialling a server.
type Client struct {
	// CAFile has the authorities of the server; the machine's if empty.
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ServerName is the name in the server's certificate; the address's host if empty.
	ServerName string `json:"serverName"`
}

// Enabled reports whether any field is set.
func (c Client) Enabled() bool { return c != Client{} }

// Validate reports contradictory fields.
func (c Client) Validate() error {
	switch {
	case c.CertFile != "" && c.KeyFile == "":
		return errors.New("tls.keyFile: missing beside certFile; name the certificate's key")
	case c.CertFile == "" && c.KeyFile != "":
		return errors.New("tls.certFile: missing beside keyFile; name the certificate")
	}
	return nil
}

// Files returns the paths in it.
func (c *Client) Files() []*string { return []*string{&c.CAFile, &c.CertFile, &c.KeyFile} }

// Load reads the authorities; each run of a dialler calls it again. The certificate is read
// anew at every handshake, so that it can be rotated. Load also reads it now, to check that
// it is valid.
func (c Client) Load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.caFile: %q cannot be read: %w; create it, or name another", c.CAFile, cause(err))
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls.caFile: %q holds no certificate in PEM form", c.CAFile)
		}
	}
	if c.CertFile == "" {
		return config, nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.pair() }
	_, err := c.pair()
	return config, err
}

// Credentials returns gRPC credentials for the result of [Client.Load]; plaintext if
// nothing is set.
func (c Client) Credentials() (credentials.TransportCredentials, error) {
	if !c.Enabled() {
		return insecure.NewCredentials(), nil
	}
	config, err := c.Load()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(config), nil
}

func (c Client) pair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls.certFile: %w; name a certificate and the key that belongs to it, in PEM form", err)
	}
	return &pair, nil
}
