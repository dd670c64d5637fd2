package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Authorities are the authorities of clients, kept apart by the trust domains that they vouch for.
type Authorities struct {
	// Own vouches for every trust domain without authorities of its own.
	Own *x509.CertPool
	// Domains are the authorities of other trust domains, by their names.
	Domains map[string]*x509.CertPool
}

// of returns the authorities that may vouch for a certificate, by the trust domain in its SPIFFE
// identity. A certificate with an invalid identity proves nothing later.
func (a *Authorities) of(leaf *x509.Certificate) *x509.CertPool {
	if len(leaf.URIs) == 1 && leaf.URIs[0].Scheme == "spiffe" {
		if apart, ok := a.Domains[leaf.URIs[0].Host]; ok {
			return apart
		}
	}
	return a.Own
}

// Hold reports until when a client's certificate chain is valid under the authorities of its trust
// domain; it fails if the chain is not valid now.
func (a *Authorities) Hold(chain []*x509.Certificate, now time.Time) (until time.Time, err error) {
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	chains, err := chain[0].Verify(x509.VerifyOptions{
		Roots: a.of(chain[0]), Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return time.Time{}, err
	}
	return lasts(chains), nil
}

// lasts returns until when the longest-lived of the chains is valid.
func lasts(chains [][]*x509.Certificate) (until time.Time) {
	for _, chain := range chains {
		ends := chain[0].NotAfter
		for _, cert := range chain {
			if cert.NotAfter.Before(ends) {
				ends = cert.NotAfter
			}
		}
		if ends.After(until) {
			until = ends
		}
	}
	return until
}

// demand has a listener verify the certificates of clients. The handshake of the library knows one
// pool: it takes any authority, and then each may vouch for its own trust domains alone.
func (a *Authorities) demand(config *tls.Config, all *x509.CertPool) {
	config.ClientCAs = all
	if len(a.Domains) == 0 {
		return
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil
		}
		if _, err := a.Hold(state.PeerCertificates, time.Now()); err != nil {
			return fmt.Errorf("the authorities of its trust domain do not vouch for the client certificate: %w", err)
		}
		return nil
	}
}

func (a *Authorities) equal(o *Authorities) bool {
	return a == nil && o == nil || a != nil && o != nil && a.Own.Equal(o.Own) && maps.EqualFunc(a.Domains, o.Domains, (*x509.CertPool).Equal)
}

// domains returns the sorted names of the trust domains with authorities of their own; none if no
// client certificates are taken.
func (f Files) domains() []string {
	if f.ClientCAFile == "" && f.Issuer == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.Domains))
}

// repair puts the last usable authorities of a trust domain in the place of unusable ones, and returns
// the fault. A broken file of another trust domain must not keep the listener's own files from being
// read.
func (k *Keeper) repair(c *content) (broken error) {
	for i, domain := range k.files.domains() {
		if i >= len(k.domains) || bytes.Equal(c.domains[i], k.domains[i]) {
			continue
		}
		if _, err := poolOf(k.files.Domains[domain], c.domains[i], x509.NewCertPool()); err != nil {
			c.domains[i], broken = k.domains[i], err
		}
	}
	k.domains = c.domains
	return broken
}
