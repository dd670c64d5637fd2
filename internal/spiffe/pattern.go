package spiffe

import (
	"fmt"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// CheckPattern returns why a text is no pattern of identities: an identity of a workload in
// which the trust domain, the namespace or the account may be *.
func CheckPattern(pattern string) error {
	const want = "spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT, where * stands for any DOMAIN, NAMESPACE or ACCOUNT"
	parts := strings.Split(pattern, "/") // spiffe:, empty, the domain, ns, …
	if len(parts) != 7 || parts[0] != "spiffe:" || parts[1] != "" || parts[3] != "ns" || parts[5] != "sa" {
		return fmt.Errorf("%q is not of the form %s", pattern, want)
	}
	for _, i := range [...]int{2, 4, 6} {
		if parts[i] == wildcard {
			parts[i] = "any"
		}
	}
	if _, err := spiffeid.FromString(strings.Join(parts, "/")); err != nil {
		return fmt.Errorf("%q is not of the form %s: %w", pattern, want, err)
	}
	if !IsNamespace(parts[4]) {
		return fmt.Errorf("the namespace of %q is not %s", pattern, NamespaceForm)
	}
	return nil
}

// wildcard stands for every value of one part of an identity.
const wildcard = "*"

// Matches reports whether a pattern includes an identity.
func Matches(pattern, id string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(id, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != wildcard && want[i] != got[i] {
			return false
		}
	}
	return true
}
