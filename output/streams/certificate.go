package streams

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
)

// validateCertificate reports faults of the settings of the listener's own certificate.
func (t TLS) validateCertificate() (errs []error) {
	switch {
	case t.CertFile == "" && t.KeyFile != "":
		errs = append(errs, errors.New("tls.certFile: missing beside keyFile; give the path of the server certificate"))
	case t.CertFile == "" && !t.present:
		errs = append(errs, errors.New("tls.certFile: missing; give the path of the server certificate"), errors.New("tls.keyFile: missing; give the path of the private key"))
	case t.CertFile == "" && !t.authority:
		errs = append(errs, errors.New("tls.certFile: missing; give the path of the server certificate, and of its key as keyFile, or set identity.authority.dir to have the authority issue it"))
	case t.CertFile != "" && t.KeyFile == "":
		errs = append(errs, errors.New("tls.keyFile: missing beside certFile; give the path of the private key"))
	}
	if len(t.Names) > 0 && t.CertFile != "" {
		errs = append(errs, errors.New("tls.names: has no effect on a certificate in a file; remove it, or remove certFile and keyFile, and identity.authority issues the certificate"))
	}
	for i, name := range t.Names {
		switch {
		case !certs.IsServerName(name):
			errs = append(errs, fmt.Errorf("tls.names[%d]: %q is neither a DNS name such as isthmus.example.com, without a wildcard, nor an IP address", i, name))
		case slices.Contains(t.Names[:i], name):
			errs = append(errs, fmt.Errorf("tls.names[%d]: %q is there already; remove one", i, name))
		}
	}
	return errs
}

// ServerNames returns the names in the certificate that an authority issues for a listener at
// an address: the configured names. Otherwise they are the host of the address unless it
// is every address, loopback, and the name of this machine.
func (t TLS) ServerNames(listen string) []string {
	if len(t.Names) > 0 {
		return t.Names
	}
	own, _ := os.Hostname()
	host, _, _ := net.SplitHostPort(listen)
	var names []string
	for _, name := range []string{host, "localhost", "127.0.0.1", "::1", strings.ToLower(own)} {
		if certs.IsServerName(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Check reports files that cannot be used, with the field at fault.
func (t TLS) Check() error {
	if t.issued() {
		return prefixed(certs.CheckClientCA(t.ClientCAFile))
	}
	_, err := t.Certificates("", nil, nil, nil)
	return err
}

// Certificates returns the keeper of the certificate of a listener at an address; nil without
// TLS. The issuer issues it unless there are files. The verifier has the authorities of other trust
// domains. It fails if files cannot be used, with the field at fault.
func (t TLS) Certificates(listen string, issuer certs.Issuer, verifier *identity.Verifier, log *slog.Logger) (*certs.Keeper, error) {
	if !t.Enabled() {
		return nil, nil
	}
	files := certs.Files{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.ClientCAFile, Domains: verifier.Authorities(), Optional: t.tokens}
	if t.issued() {
		files.Issuer, files.Names = issuer, t.ServerNames(listen)
	}
	keeper, err := certs.New(files, log)
	if err != nil {
		return nil, prefixed(err)
	}
	return keeper, nil
}

// prefixed adds the field of the settings to an error of one of them.
func prefixed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tls.%w", err)
}
