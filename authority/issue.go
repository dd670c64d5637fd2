package authority

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/lockfile"
)

// claims are the content of a token.
type claims struct {
	Issuer    string           `json:"iss"`
	Subject   string           `json:"sub"`
	Audience  []string         `json:"aud"`
	IssuedAt  *jwt.NumericDate `json:"iat"`
	NotBefore *jwt.NumericDate `json:"nbf"`
	Expiry    *jwt.NumericDate `json:"exp"`
	ID        string           `json:"jti"`
	Address   []netip.Prefix   `json:"address,omitempty"`
}

// Issue returns the text of a new token. It is in the file of tokens before Issue returns.
// No token is issued for a revoked account.
func (a *Authority) Issue(g Grant, now time.Time) (text string, entry Token, err error) {
	if found := g.Check(); len(found) > 0 {
		return "", entry, joined(found)
	}
	id, err := a.AccountID(g.Namespace, g.Account)
	if err != nil {
		return "", entry, err
	}
	now = now.UTC().Truncate(time.Second)
	entry = Token{ID: rand.Text(), Namespace: g.Namespace, Account: g.Account, Issued: now, Expires: now.Add(g.TTL).Truncate(time.Second)}
	entry.Addresses, _ = g.blocks()
	if text, err = a.signToken(id, entry); err != nil {
		return "", entry, err
	}
	return text, entry, a.enter(id, entry, now)
}

// signToken returns the text of a token.
func (a *Authority) signToken(id spiffeid.ID, t Token) (string, error) {
	key := jose.JSONWebKey{Key: a.tokenSigner, KeyID: a.KeyID(), Algorithm: string(jose.ES256)}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(claims{
		Issuer: identity.AuthorityIssuer(a.domain.Name()), Subject: id.String(), Audience: []string{identity.Audience},
		IssuedAt: jwt.NewNumericDate(t.Issued), NotBefore: jwt.NewNumericDate(t.Issued), Expiry: jwt.NewNumericDate(t.Expires),
		ID: t.ID, Address: t.Addresses,
	}).Serialize()
}

// enter adds a token to the file of tokens.
func (a *Authority) enter(id spiffeid.ID, t Token, now time.Time) error {
	lock, err := a.dir.lock()
	if err != nil {
		return err
	}
	defer lockfile.Release(lock)
	revocations, err := a.Revocations()
	if err != nil {
		return err
	}
	if r := find(revocations.Accounts, id.String()); r != nil {
		return fmt.Errorf("%s is revoked since %s, and gets no token: take it back first with 'isthmus ca revoke --undo --dir %s --namespace %s --account %s'",
			id, r.Since.Format(time.RFC3339), a.dir, t.Namespace, t.Account)
	}
	list, err := a.dir.readTokens()
	if err != nil {
		return err
	}
	list.Tokens = append(list.Tokens, t)
	text, err := list.encode(now)
	if err != nil {
		return err
	}
	return a.dir.replace(TokensFile, private, text)
}
