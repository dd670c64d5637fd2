package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/certs"
)

var _ certs.Issuer = (*Issuer)(nil)

// IssueServer implements [certs.Issuer]. The certificate is for servers alone and has no
// SPIFFE identity, so it proves no workload. The key is new.
func (i *Issuer) IssueServer(names []string, now time.Time) (tls.Certificate, error) {
	template, err := serverTemplate(names, now, i.ttl)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	own := i.Authority()
	chain, err := own.signLeaf(own.servers, template, &key.PublicKey, now)
	if err != nil {
		return tls.Certificate{}, err
	}
	if cross, _ := pem.Decode(own.cross); cross != nil { // clients with the root before may connect
		chain = append(chain, cross.Bytes)
	}
	leaf, err := x509.ParseCertificate(chain[0])
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, err
}

// Signer implements [certs.Issuer].
func (i *Issuer) Signer() string { return hashOf(i.Authority().servers.cert) }

// Authorities implements [certs.Issuer].
func (i *Issuer) Authorities() []byte { return i.Bundle().Authorities }

// serverTemplate returns the certificate of a server with DNS names and IP addresses.
func serverTemplate(names []string, now time.Time, ttl time.Duration) (*x509.Certificate, error) {
	if len(names) == 0 {
		return nil, errors.New("the server has no name: give it a DNS name or an IP address")
	}
	t := &x509.Certificate{ // without a subject, as the names are all that counts
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(ttl),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if at, err := netip.ParseAddr(name); err == nil {
			t.IPAddresses = append(t.IPAddresses, net.IP(at.AsSlice()))
			continue
		}
		if !certs.IsServerName(name) {
			return nil, fmt.Errorf("%q is neither a DNS name nor an IP address", name)
		}
		t.DNSNames = append(t.DNSNames, name)
	}
	return t, nil
}
