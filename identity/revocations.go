package identity

import (
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/json"
)

// Audience is the default audience of tokens, and the audience of the authority's tokens.
const Audience = "isthmus"

// The files in the folder of an authority that a verifier reads.
const (
	TokenKeysFile = "token-keys.json" // the public keys of its tokens, a JSON Web Key Set
	RevokedFile   = "revoked.json"    // [Revocations]
)

// AuthorityIssuer returns the issuer in the tokens of the authority of a trust domain.
func AuthorityIssuer(trustDomain string) string { return "spiffe://" + trustDomain }

// Revocations are the revoked accounts and tokens.
type Revocations struct {
	Accounts []Revocation `json:"accounts"` // by SPIFFE identity
	Tokens   []Revocation `json:"tokens"`   // by claim jti
}

// Revocation is one revoked account or token.
type Revocation struct {
	ID    string    `json:"id"`
	Since time.Time `json:"since"` // for people: it takes effect at once
}

// Read reads the revocations in a file. A missing file means none. It fails without a change
// if the file is unreadable or invalid, or if its folder is missing.
func (r *Revocations) Read(path string) error {
	file := watched[Revocations]{path: path, most: mostRevocations, optional: true}
	read, err := file.parsed(parseRevocations)
	if err == nil {
		*r = read
	}
	return err
}

// mostRevocations bounds the bytes of the file, some 100,000 revocations.
const mostRevocations = 16 << 20

func parseRevocations(text []byte) (read Revocations, err error) {
	if text == nil {
		return Revocations{}, nil
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return Revocations{}, fmt.Errorf("it is not a list of revocations: %w; repair it, or restore it from a backup", err)
	}
	for i, account := range read.Accounts {
		if _, err := parseID(account.ID); err != nil {
			return Revocations{}, fmt.Errorf("accounts[%d].id: %w; repair it", i, err)
		}
	}
	for i, token := range read.Tokens {
		if token.ID == "" {
			return Revocations{}, fmt.Errorf("tokens[%d].id: missing; repair it", i)
		}
	}
	return read, nil
}
