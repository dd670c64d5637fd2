package kubernetes_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/identity"
)

// A token that the API server issues for Isthmus proves its service account, with the keys at
// the API server's own URL and with the same keys in a file. Its tokens for itself prove
// nothing.
func TestTokenOfTheAPIServerProvesAnAccount(t *testing.T) {
	t.Parallel()
	a := accountsOf(t, shared)
	a.create("proven")
	config := a.config
	dir := t.TempDir()
	keysFile, tokenFile := filepath.Join(dir, "keys.json"), filepath.Join(dir, "token")
	for file, text := range map[string][]byte{keysFile: a.keys(), tokenFile: []byte(config.BearerToken)} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	forIsthmus, forItself := a.issue("proven", "isthmus"), a.issue("proven")
	for name, from := range map[string]identity.Issuer{
		"url":  {KeysURL: config.Host + "/openid/v1/jwks", CAFile: config.CAFile, TokenFile: tokenFile},
		"file": {KeysFile: keysFile},
	} {
		t.Run(name, func(t *testing.T) {
			from.Issuer = issuerOf(t, forIsthmus)
			v := runVerifier(t, identity.Config{JWT: []identity.Issuer{from}})
			await(t, "the proof", func() error {
				proof, err := v.Prove(t.Context(), bearer(forIsthmus))
				if err == nil && proof.ID != "spiffe://cluster.local/ns/default/sa/proven" {
					err = fmt.Errorf("it is of %q", proof.ID)
				}
				return err
			})
			if proof, err := v.Prove(t.Context(), bearer(forItself)); err == nil || !strings.Contains(err.Error(), "audience") {
				t.Errorf("a token for the API server proves %q: %v", proof.ID, err)
			}
		})
	}
}

// runVerifier runs a verifier until the test ends.
func runVerifier(t *testing.T, c identity.Config) *identity.Verifier {
	t.Helper()
	v, err := identity.New(c, "istio-system", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	return v
}

// bearer is the evidence of a token over TLS.
func bearer(token string) identity.Evidence {
	return identity.Evidence{Secure: true, Authorization: []string{"Bearer " + token}}
}

// issuerOf returns the claim iss of a token.
func issuerOf(t *testing.T, token string) string {
	t.Helper()
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	var claims struct{ Iss string }
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	return claims.Iss
}
