package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
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

// revocationFile is a file with [Revocations] that the configuration names in a field.
type revocationFile struct {
	field, path string
	optional    bool // it may be missing until it was there
}

// revocationFiles returns the lists of revocations. All of them count.
func (c *Config) revocationFiles() (all []revocationFile) {
	if c.Revocations != "" {
		all = append(all, revocationFile{field: "revocations", path: filepath.Clean(c.Revocations)})
	}
	if c.Authority.Dir == "" {
		return all
	}
	own := revocationFile{field: "authority.dir", path: filepath.Join(c.Authority.Dir, RevokedFile), optional: true}
	if len(all) > 0 && all[0].path == own.path { // it is named to be required
		return all
	}
	return append(all, own)
}

// open reads the file. It fails if the revocations are unknown.
func (f revocationFile) open(log *slog.Logger) (*revoked, error) {
	opened := newRevoked(f, log)
	err := opened.fault().err
	if err == nil {
		return opened, nil
	}
	if !f.optional && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; restore it from a backup, name another, or create it with the content {} to revoke nothing", err)
	}
	return nil, fmt.Errorf("%s: %w", f.field, err)
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
	now := file.look(parseRevocations)
	if now.fault.err == nil {
		*r = now.value
	}
	return now.fault.err
}

// mostRevocations bounds the bytes of the file, some 100,000 revocations.
const mostRevocations = 16 << 20

// parseRevocations reads a list, which people may write. Other members are errors, since a
// misspelled name would revoke nothing.
func parseRevocations(text []byte) (read Revocations, err error) {
	var members map[string]json.RawMessage
	if err = json.Unmarshal(text, &members); err == nil && members == nil {
		err = errors.New("it is null")
	}
	for name := range members {
		if name != "accounts" && name != "tokens" {
			return Revocations{}, fmt.Errorf("it has %s, and only accounts and tokens can be revoked; correct the name", clip(name))
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
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
