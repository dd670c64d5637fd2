package xds

import (
	"crypto/tls"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// rootNamespace is where control planes are unless their certificate says otherwise.
const rootNamespace = "istio-system"

// namespaceOf returns the namespace in the client certificate: servers reject a node
// with another one.
func namespaceOf(shown certs.Client) string {
	if shown.CertFile == "" {
		return rootNamespace
	}
	pair, err := tls.LoadX509KeyPair(shown.CertFile, shown.KeyFile)
	if err != nil {
		return rootNamespace // the handshake reports the error
	}
	_, namespace, err := spiffe.Read(pair.Leaf)
	if err != nil || namespace == "" {
		return rootNamespace
	}
	return namespace
}
