package servicecenter

import (
	"crypto/tls"
	"errors"
	"net"
)

// unreached reports whether a request cannot have reached a server: there was no
// connection to send it on.
func unreached(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	return badCertificate
}
