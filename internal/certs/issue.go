package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"regexp"
	"time"
)

// Issuer issues the certificates of listeners. Its methods do no I/O, and may be called from
// any goroutine.
type Issuer interface {
	// IssueServer returns a certificate for DNS names and IP addresses, with its key and the
	// certificates between it and the root.
	IssueServer(names []string, now time.Time) (tls.Certificate, error)
	// Signer names the key that signs now. The certificate of another one is replaced at once.
	Signer() string
	// Authorities returns the authorities of clients, in PEM form.
	Authorities() []byte
}

// issue returns a new certificate.
func (f Files) issue(now time.Time) (tls.Certificate, error) {
	pair, err := f.Issuer.IssueServer(f.Names, now)
	if err != nil {
		return pair, &FileError{"certFile", fmt.Sprintf("not set, and the authority issues no certificate: %v", err)}
	}
	return pair, nil
}

// due returns the time at which an issued certificate is renewed, when half of its validity is
// over; zero for a certificate in files.
func (f Files) due(config *tls.Config, now time.Time) time.Time {
	if f.Issuer == nil || config.Certificates[0].Leaf == nil {
		return time.Time{}
	}
	return now.Add(config.Certificates[0].Leaf.NotAfter.Sub(now) / 2)
}

// dnsName is a host name of RFC 1123, which has no wildcard.
var dnsName = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

// numeric is a name that clients read as an address, such as 1.2.3 or 10.0.0.300.
var numeric = regexp.MustCompile(`(^|\.)[0-9]+$`)

// IsServerName reports whether a listener's certificate may have a name: a DNS name without a
// wildcard, or the address of one server.
func IsServerName(name string) bool {
	if at, err := netip.ParseAddr(name); err == nil {
		return at.Zone() == "" && !at.IsUnspecified() && !at.IsMulticast()
	}
	const most = 253
	return len(name) <= most && dnsName.MatchString(name) && !numeric.MatchString(name)
}

// CheckClientCA reports an unusable file of clients' authorities; none is fine.
func CheckClientCA(path string) error {
	if path == "" {
		return nil
	}
	text, err := readFile("clientCAFile", path)
	if err == nil {
		_, err = poolOf(path, text, x509.NewCertPool())
	}
	return err
}
