package authority

import (
	"log/slog"

	"github.com/isthmus-mesh/isthmus/identity"
)

// Root is the root namespace of verifiers.
const Root = "istio-system"

// Verifier returns a verifier with the root namespace [Root].
func Verifier(t TB, c identity.Config) *identity.Verifier {
	t.Helper()
	v, err := identity.New(c, Root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("verifier: %v", err)
	}
	return v
}
