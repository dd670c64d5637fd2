package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// mostToken bounds the bytes of a header with a token, before anything is parsed.
const mostToken = 16 << 10

// tokens prove an identity by a signed token, by the claim iss of its issuer.
type tokens map[string]*issuer

var _ prover = tokens(nil)

// issuer is an issuer with its keys.
type issuer struct {
	Issuer
	keys      keySource
	authority bool // its tokens have an id, by which each can be revoked
}

func (t tokens) prove(ctx context.Context, e Evidence) (Proof, error) {
	if len(e.Authorization) == 0 {
		return Proof{}, nil
	}
	text, err := bearer(e)
	if err != nil {
		return Proof{}, err
	}
	signed, err := parseToken(text)
	if err != nil {
		return Proof{}, err
	}
	var unverified claims
	if json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &unverified) != nil {
		return Proof{}, errors.New("token: its claims are not a JSON object with each name once")
	}
	name, err := unverified.text("iss")
	if err != nil {
		return Proof{}, fmt.Errorf("token: %w", err)
	}
	from := t[name]
	if from == nil {
		return Proof{}, fmt.Errorf("token: the issuer %s is not configured; add it to identity.jwt", clip(name))
	}
	return from.prove(ctx, signed, e)
}

// bearer returns the token in the evidence. Its text is in no error.
func bearer(e Evidence) (string, error) {
	if n := len(e.Authorization); n > 1 {
		return "", fmt.Errorf("token: %d values of the authorization header; send one", n)
	}
	value := e.Authorization[0]
	if !e.Secure {
		return "", errors.New("token: tokens are taken over TLS only, since anybody between can read them; connect with TLS")
	}
	if len(value) > mostToken {
		return "", fmt.Errorf("token: larger than %d bytes, the limit", mostToken)
	}
	scheme, text, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "bearer") || text == "" {
		return "", errors.New(`token: the authorization header is not "Bearer TOKEN"`)
	}
	return text, nil
}

// parseToken parses a token of one signature. Keys and places of keys in its header mean
// nothing. Errors of the parser may contain its text, and are left out.
func parseToken(text string) (*jose.JSONWebSignature, error) {
	signed, err := jose.ParseSignedCompact(text, algorithms())
	var other *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &other):
		return nil, fmt.Errorf("token: the algorithm %s is not accepted; accepted are %v", clip(string(other.Got)), algorithms())
	case err != nil:
		return nil, errors.New("token: it is not a signed JSON Web Token")
	}
	return signed, nil
}

// prove verifies a token of the issuer.
func (i *issuer) prove(ctx context.Context, signed *jose.JSONWebSignature, e Evidence) (Proof, error) {
	fail := func(err error) (Proof, error) {
		return Proof{}, fmt.Errorf("token of the issuer %q: %w", i.Issuer.Issuer, err)
	}
	verified, err := i.verify(ctx, signed)
	if err != nil {
		return fail(err)
	}
	id, who, err := i.identity(verified)
	if err != nil {
		return fail(err)
	}
	expires, err := i.allows(verified, e)
	if err != nil {
		return Proof{}, fmt.Errorf("token of the issuer %q for %s: %w", i.Issuer.Issuer, id, err)
	}
	name, err := verified.optional("jti")
	if err == nil && name == "" && i.authority {
		err = errors.New("the claim jti is missing, without which it cannot be revoked")
	}
	if err != nil {
		return fail(err)
	}
	return Proof{
		ID: id.String(), TrustDomain: who.trustDomain, Namespace: who.namespace, Account: who.account,
		Expires: expires, By: ByToken, Issuer: i.Issuer.Issuer, Token: name,
	}, nil
}

// verify returns the claims under the signature.
func (i *issuer) verify(ctx context.Context, signed *jose.JSONWebSignature) (verified claims, err error) {
	header := signed.Signatures[0].Protected
	if _, critical := header.ExtraHeaders["crit"]; critical {
		return nil, errors.New("its header demands an extension (crit), and none is supported")
	}
	if header.KeyID == "" {
		return nil, errors.New("its header has no key id (kid)")
	}
	by, err := i.keys.find(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}
	if err := by.fits(jose.SignatureAlgorithm(header.Algorithm)); err != nil {
		return nil, fmt.Errorf("key %s: %w", clip(header.KeyID), err)
	}
	payload, err := signed.Verify(by.public)
	if err != nil {
		return nil, fmt.Errorf("the signature is not that of the key %s", clip(header.KeyID))
	}
	if err := json.Unmarshal(payload, &verified); err != nil {
		return nil, errors.New("its claims are not a JSON object with each name once")
	}
	return verified, nil
}

// allows returns the end of a token that is valid now, for Isthmus and for the peer.
func (i *issuer) allows(c claims, e Evidence) (expires time.Time, err error) {
	if err := c.hasAudience(i.Audience); err != nil {
		return expires, err
	}
	if expires, err = c.validAt(time.Now()); err != nil {
		return expires, err
	}
	return expires, c.hasPeer(e.Peer)
}
