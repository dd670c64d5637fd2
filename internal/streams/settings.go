package streams

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// TLS is a listener's certificate, and its demands on clients.
type TLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ClientCAFile, if set, makes clients prove their identity.
	ClientCAFile string `json:"clientCAFile"`
	// TrustDomains are the allowed trust domains of client identities; empty means any that
	// the client's authorities vouch for.
	TrustDomains []string `json:"trustDomains"`

	tokens bool
}

// TakeTokens makes client certificates optional: a client may prove its identity by a token
// instead, and has to prove one in either way.
func (t *TLS) TakeTokens() { t.tokens = true }

// DemandsProof reports whether clients have to prove an identity.
func (t TLS) DemandsProof() bool { return t.ClientCAFile != "" || t.Enabled() && t.tokens }

// Enabled reports whether any field is set.
func (t TLS) Enabled() bool {
	return t.CertFile != "" || t.KeyFile != "" || t.ClientCAFile != "" || len(t.TrustDomains) > 0
}

// Validate reports contradictory or invalid fields.
func (t TLS) Validate() error {
	if !t.Enabled() {
		return nil
	}
	var errs []error
	if t.CertFile == "" {
		errs = append(errs, errors.New("tls.certFile: missing; give the path of the server certificate"))
	}
	if t.KeyFile == "" {
		errs = append(errs, errors.New("tls.keyFile: missing; give the path of the private key"))
	}
	if len(t.TrustDomains) > 0 && !t.DemandsProof() {
		errs = append(errs, errors.New("tls.trustDomains: has no effect if no client proves its identity; set clientCAFile to the CA certificates of the clients, or identity for tokens"))
	}
	for i, name := range t.TrustDomains {
		if domain, err := spiffeid.TrustDomainFromString(name); err != nil || domain.Name() != name {
			errs = append(errs, fmt.Errorf("tls.trustDomains[%d]: %q is not a trust domain such as cluster.local", i, name))
		}
	}
	return errors.Join(errs...)
}

// Certificates returns the keeper of the listener's files; nil without TLS. It fails if the
// files cannot be used, with the field at fault.
func (t TLS) Certificates(log *slog.Logger) (*certs.Keeper, error) {
	if !t.Enabled() {
		return nil, nil
	}
	keeper, err := certs.New(certs.Files{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.ClientCAFile, Optional: t.tokens}, log)
	if err != nil {
		return nil, fmt.Errorf("tls.%w", err)
	}
	return keeper, nil
}

// Files returns the paths in it.
func (t *TLS) Files() []*string { return []*string{&t.CertFile, &t.KeyFile, &t.ClientCAFile} }

// ValidListen returns why an address, a host and port or unix:///path, is not allowed.
// Without TLS it has to be of this machine, unless insecure is set. Example and socket are
// valid values for the error texts.
func ValidListen(address string, t TLS, insecure bool, example, socket string) error {
	if path, unix := strings.CutPrefix(address, "unix://"); unix {
		if path == "" {
			return fmt.Errorf("listen: unix:// needs a path, such as %s", socket)
		}
		return nil
	}
	if err := loopback.ValidListen(address); err != nil {
		return fmt.Errorf("listen: %w, such as %s", err, example)
	}
	if IsLocal(address) || t.Enabled() || insecure {
		return nil
	}
	return fmt.Errorf("listen: %q is plaintext and not loopback; listen on 127.0.0.1, set tls, or set insecure: true if the network is trusted", address)
}

// IsLocal reports whether a listener can be reached from this machine only.
func IsLocal(address string) bool {
	return strings.HasPrefix(address, "unix://") || loopback.IsListen(address)
}
