package spiffe

import (
	"crypto/x509"
	"fmt"
	"slices"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Leaf is [Read] for the certificate of a workload, by the rules of SPIFFE (X.509-SVID): it is of
// no authority, its key signs data but neither certificates nor lists of revocations, and if its
// extended usages are limited, they include the given ones. A certificate without key usages, which
// SPIFFE does not allow, is taken: the key is not limited.
func Leaf(c *x509.Certificate, usages ...x509.ExtKeyUsage) (id spiffeid.ID, namespace string, err error) {
	if id, namespace, err = Read(c); err != nil {
		return id, namespace, err
	}
	switch {
	case c.IsCA:
		err = fmt.Errorf("the certificate of %s is that of an authority; have a certificate of a workload issued", id)
	case c.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		err = fmt.Errorf("the key of %s may sign certificates or lists of revocations; have a certificate issued without these usages", id)
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		err = fmt.Errorf("the certificate of %s lacks the key usage digital signature; have it issued with that", id)
	case len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) > 0 && !slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny):
		for _, usage := range usages {
			if !slices.Contains(c.ExtKeyUsage, usage) {
				err = fmt.Errorf("the certificate of %s lacks the extended usage %s; have it issued with that", id, usage)
			}
		}
	}
	return id, namespace, err
}
