package streams

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// TLS is a listener's certificate, and its demands on clients.
type TLS struct {
	// CertFile and KeyFile may be empty if an authority issues the certificate.
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// Names are the DNS names and IP addresses in the certificate that an authority issues;
	// see [TLS.ServerNames].
	Names []string `json:"names"`
	// ClientCAFile, if set, makes clients prove their identity.
	ClientCAFile string `json:"clientCAFile"`
	// TrustDomains are the allowed trust domains of client identities; empty means any that
	// the client's authorities vouch for.
	TrustDomains []string `json:"trustDomains"`
	// AcceptOwnLeaves lets clients read with a certificate that Isthmus itself sends to clients.
	AcceptOwnLeaves bool `json:"acceptOwnLeaves"`

	present, tokens, authority bool
}

// SetDefaults turns TLS on: the configuration has the settings, though they may be empty.
func (t *TLS) SetDefaults() { t.present = true }

// HaveAuthority lets an authority issue the certificate, unless files of it are set.
func (t *TLS) HaveAuthority() { t.authority = true }

// issued reports whether an authority issues the certificate.
func (t TLS) issued() bool { return t.Enabled() && t.authority && t.CertFile == "" && t.KeyFile == "" }

// TakeTokens makes client certificates optional: a client may prove its identity by a token
// instead, and has to prove one in either way.
func (t *TLS) TakeTokens() { t.tokens = true }

// DemandsProof reports whether clients have to prove an identity.
func (t TLS) DemandsProof() bool { return t.ClientCAFile != "" || t.Enabled() && t.tokens }

// Enabled reports whether the listener has TLS.
func (t TLS) Enabled() bool {
	return t.present || t.CertFile != "" || t.KeyFile != "" || t.ClientCAFile != "" || len(t.TrustDomains) > 0 || t.AcceptOwnLeaves
}

// Validate reports contradictory or invalid fields.
func (t TLS) Validate() error {
	if !t.Enabled() {
		return nil
	}
	errs := t.validateCertificate()
	if len(t.TrustDomains) > 0 && !t.DemandsProof() {
		errs = append(errs, errors.New("tls.trustDomains: has no effect if no client proves its identity; set clientCAFile to the CA certificates of the clients, or identity for tokens"))
	}
	if t.AcceptOwnLeaves && !t.DemandsProof() {
		errs = append(errs, errors.New("tls.acceptOwnLeaves: has no effect if no client proves its identity; remove it, or set clientCAFile to the CA certificates of the clients, or identity for tokens"))
	}
	for i, name := range t.TrustDomains {
		if domain, err := spiffeid.TrustDomainFromString(name); err != nil || domain.Name() != name {
			errs = append(errs, fmt.Errorf("tls.trustDomains[%d]: %q is not a trust domain such as cluster.local", i, name))
		}
	}
	return errors.Join(errs...)
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
