// Package spiffe reads the identities of workloads from certificates.
package spiffe

import (
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// Form is the form of the identity of a workload.
const Form = "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT"

// Read reads the identity of a workload, of the form [Form], from the one URI of a
// certificate.
func Read(cert *x509.Certificate) (id spiffeid.ID, namespace string, err error) {
	if len(cert.URIs) != 1 {
		return id, "", fmt.Errorf("it has %d URIs among its names; it needs exactly one, of the form %s", len(cert.URIs), Form)
	}
	if id, err = spiffeid.FromURI(cert.URIs[0]); err != nil {
		return id, "", fmt.Errorf("%q is not an identity of the form %s: %w", cert.URIs[0], Form, err)
	}
	namespace, _, err = Parts(id)
	return id, namespace, err
}

// Parts returns the namespace and the account of the identity of a workload.
func Parts(id spiffeid.ID) (namespace, account string, err error) {
	path := strings.Split(id.Path(), "/") // begins with a slash
	if len(path) != 5 || path[1] != "ns" || path[3] != "sa" {
		return "", "", fmt.Errorf("%q is not of the form %s", id, Form)
	}
	if !IsNamespace(path[2]) {
		return "", "", fmt.Errorf("the namespace %q of %q is not %s", path[2], id, NamespaceForm)
	}
	return path[2], path[4], nil
}

// NamespaceForm describes the form of a namespace's name.
const NamespaceForm = "a DNS label (RFC 1123): lower-case letters, digits and hyphens, beginning and ending with a letter or digit, at most 63"

// IsNamespace reports whether Kubernetes accepts a text as the name of a namespace. It
// rejects ".", "*" and "~", the words for namespaces in exports and scopes.
func IsNamespace(s string) bool { return len(content.IsDNS1123Label(s)) == 0 }

// AccountForm describes the form of a service account's name.
const AccountForm = "a DNS subdomain (RFC 1123): lower-case letters, digits, hyphens and dots, each label beginning and ending with a letter or digit, at most 253"

// IsAccount reports whether Kubernetes accepts a text as the name of a service account.
func IsAccount(s string) bool { return len(content.IsDNS1123Subdomain(s)) == 0 }
