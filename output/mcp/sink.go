package mcp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// Sink is one that is dialled.
type Sink struct {
	// Address is a host and port, or unix:///path.
	Address string `json:"address"`
	// TLS is off while it is empty.
	TLS SinkTLS `json:"tls"`
}

// SinkTLS says how a sink is known, and what it is shown.
type SinkTLS struct {
	// CAFile has the authorities of the sink; those of the machine if it is empty.
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ServerName is the name in the sink's certificate; that of its address if empty.
	ServerName string `json:"serverName"`
}

func (t SinkTLS) enabled() bool { return t != SinkTLS{} }

func (s Sink) local() bool {
	host, _, err := net.SplitHostPort(s.Address)
	return strings.HasPrefix(s.Address, "unix://") || err == nil && loopback.IsHost(host)
}

func (s Sink) validate(field string, insecureIsFine bool) error {
	var errs []error
	if path, unix := strings.CutPrefix(s.Address, "unix://"); unix {
		if path == "" {
			errs = append(errs, fmt.Errorf("%saddress: unix:// without a path; give such as unix:///run/pilot.sock", field))
		}
	} else if host, port, err := net.SplitHostPort(s.Address); err != nil || host == "" {
		errs = append(errs, fmt.Errorf("%saddress: %q is not a host and port; give such as istio-pilot.istio-system:9901", field, s.Address))
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		errs = append(errs, fmt.Errorf("%saddress: %q in %q is not a port from 1 to 65535", field, port, s.Address))
	} else if !s.local() && !s.TLS.enabled() && !insecureIsFine {
		errs = append(errs, fmt.Errorf("%saddress: %q would be dialled in plaintext and is not loopback; set tls, or set insecure: true if the network is trusted", field, s.Address))
	}
	if (s.TLS.CertFile == "") != (s.TLS.KeyFile == "") {
		errs = append(errs, fmt.Errorf("%stls.certFile: certFile and keyFile belong together; set both or neither", field))
	}
	return errors.Join(errs...)
}

// load reads the authorities. The certificate is read anew at every handshake, so
// that it can be rotated; the authorities are read whenever the sink is dialled.
func (t SinkTLS) load() (*tls.Config, error) {
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
	if t.CertFile == "" {
		return config, nil
	}
	pair := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.certFile: %w", err)
		}
		return &pair, nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair() }
	_, err := pair()
	return config, err
}

func (t SinkTLS) credentials() (credentials.TransportCredentials, error) {
	if !t.enabled() {
		return insecure.NewCredentials(), nil
	}
	config, err := t.load()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(config), nil
}
