// Package verifier makes verifiers of identities for tests of listeners.
package verifier

import (
	"log/slog"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// Root is the root namespace of verifiers.
const Root = "istio-system"

// New returns a verifier with the root namespace [Root].
func New(t authority.TB, c identity.Config) *identity.Verifier {
	t.Helper()
	v, err := identity.New(c, Root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("verifier: %v", err)
	}
	return v
}
