package certs

import (
	"crypto/x509"
	"time"
)

// Holds reports until when a client's certificate chain is valid under some authorities; it
// fails if the chain is not valid now.
func Holds(chain []*x509.Certificate, authorities *x509.CertPool, now time.Time) (until time.Time, err error) {
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	chains, err := chain[0].Verify(x509.VerifyOptions{
		Roots: authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
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
