package model

import (
	"cmp"
	"strings"
)

// Account is the service account of a workload as a whole identity. It costs nothing in records:
// an endpoint has the text, and its record the namespace. The zero value is no account.
type Account struct {
	Namespace string // of the record
	// Text is a name, for an account of that namespace and of the trust domain of the mesh, or
	// the identity itself, such as spiffe://other.example/ns/shop/sa/web.
	Text string
}

// Compare orders by namespace and text.
func (a Account) Compare(o Account) int {
	return cmp.Or(cmp.Compare(a.Namespace, o.Namespace), cmp.Compare(a.Text, o.Text))
}

func (a Account) isWhole() bool { return strings.Contains(a.Text, "://") }

// Identity returns the identity in a mesh of a trust domain.
func (a Account) Identity(trustDomain string) string {
	if a.isWhole() {
		return a.Text
	}
	return IdentitiesIn(a.Namespace, trustDomain) + "sa/" + a.Text
}

// NameIn returns the name by which a record of a namespace has the account; false if the account
// is of another namespace or trust domain.
func (a Account) NameIn(namespace, trustDomain string) (name string, own bool) {
	if a.isWhole() {
		return strings.CutPrefix(a.Text, IdentitiesIn(namespace, trustDomain)+"sa/")
	}
	return a.Text, a.Namespace == namespace
}

// In returns the text by which a record of a namespace has the account.
func (a Account) In(namespace, trustDomain string) string {
	if name, own := a.NameIn(namespace, trustDomain); own || a.Text == "" {
		return name
	}
	return a.Identity(trustDomain)
}

// IdentitiesIn returns the beginning of all identities of a namespace.
func IdentitiesIn(namespace, trustDomain string) string {
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/"
}
