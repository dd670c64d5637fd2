package authority

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/identity"
)

// Token is the entry of an issued token. The text of the token is stored nowhere.
type Token struct {
	ID        string         `json:"id"` // claim jti
	Namespace string         `json:"namespace"`
	Account   string         `json:"account"`
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	Issued    time.Time      `json:"issued"`
	Expires   time.Time      `json:"expires"`
}

// check returns why an entry cannot be of this package.
func (t Token) check() error {
	switch {
	case t.ID == "":
		return errors.New("id: missing")
	case len(CheckAccount(t.Namespace, t.Account)) > 0:
		return joined(CheckAccount(t.Namespace, t.Account))
	case !t.Issued.Before(t.Expires):
		return errors.New("expires: not after issued")
	case slices.ContainsFunc(t.Addresses, func(p netip.Prefix) bool { return !p.IsValid() }):
		return errors.New("addresses: empty")
	default:
		return nil
	}
}

// tokenList is the content of the file of tokens, in the order in which they were issued.
type tokenList struct {
	Tokens []Token `json:"tokens"`
}

// parseTokens parses the file of tokens. Unknown fields are errors: a newer version wrote
// them, and writing the file would lose them.
func parseTokens(text []byte) (list tokenList, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		return tokenList{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return tokenList{}, errors.New("text after the list")
	}
	seen := map[string]bool{}
	for i, t := range list.Tokens {
		if err := t.check(); err != nil {
			return tokenList{}, fmt.Errorf("tokens[%d].%w", i, err)
		}
		if seen[t.ID] {
			return tokenList{}, fmt.Errorf("tokens[%d].id: %q is there twice", i, t.ID)
		}
		seen[t.ID] = true
	}
	return list, nil
}

// keptExpired is how long an expired token stays in the file.
const keptExpired = 7 * 24 * time.Hour

// encode returns the text of the file, without tokens that expired long ago.
func (l tokenList) encode(now time.Time) ([]byte, error) {
	kept := tokenList{Tokens: []Token{}}
	for _, t := range l.Tokens {
		if now.Before(t.Expires.Add(keptExpired)) {
			kept.Tokens = append(kept.Tokens, t)
		}
	}
	return encoded(kept)
}

func encoded(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

// Listed is a token that has not expired, with its state.
type Listed struct {
	Token
	Identity string
	// IsRevoked means that the token or its account is revoked, since Revoked if that is known.
	IsRevoked bool
	Revoked   time.Time
}

// Tokens returns the tokens that have not expired, in the order in which they were issued.
func (f *Folder) Tokens(now time.Time) ([]Listed, error) {
	list, err := f.dir.readTokens()
	if err != nil {
		return nil, err
	}
	revocations, err := f.Revocations()
	if err != nil {
		return nil, err
	}
	listed := []Listed{}
	for _, t := range list.Tokens {
		if !now.Before(t.Expires) {
			continue
		}
		id, err := f.AccountID(t.Namespace, t.Account)
		if err != nil {
			return nil, err
		}
		one := Listed{Token: t, Identity: id.String()}
		for _, r := range []*identity.Revocation{find(revocations.Tokens, t.ID), find(revocations.Accounts, id.String())} {
			if r == nil {
				continue
			}
			if one.IsRevoked = true; one.Revoked.IsZero() || r.Since.Before(one.Revoked) {
				one.Revoked = r.Since
			}
		}
		listed = append(listed, one)
	}
	return listed, nil
}
