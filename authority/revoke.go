package authority

import (
	"fmt"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/lockfile"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// Revocations returns the revoked accounts and tokens.
func (f *Folder) Revocations() (r identity.Revocations, err error) {
	err = r.Read(f.dir.path(identity.RevokedFile))
	return r, err
}

// Unlisted returns a warning if the file of revocations is missing. A folder has one from the
// beginning, unless an earlier version made it.
func (f *Folder) Unlisted() string {
	if f.dir.has(identity.RevokedFile) {
		return ""
	}
	return f.dir.path(identity.RevokedFile) + " is missing, and with it all earlier revocations: restore it from your backup, or create it with the content {} if nothing was revoked"
}

// ParseID reads the identity of an account of any trust domain. It accepts every identity that a
// client can prove, and so also accounts with names that Kubernetes does not accept.
func ParseID(text string) (spiffeid.ID, error) {
	id, err := spiffeid.FromString(text)
	if err != nil {
		return id, fmt.Errorf("%q is not an identity of the form %s: %w", text, spiffe.Form, err)
	}
	_, _, err = spiffe.Parts(id)
	return id, err
}

// RevokeAccount revokes an account with all its tokens and certificates. It does so even if
// the file of tokens cannot be read. Revoking again keeps the first time.
func (f *Folder) RevokeAccount(id spiffeid.ID, now time.Time) (identity.Revocation, error) {
	lock, err := f.dir.lock()
	if err != nil {
		return identity.Revocation{}, err
	}
	defer lockfile.Release(lock)
	r, err := f.Revocations()
	if err != nil {
		return identity.Revocation{}, err
	}
	if there := find(r.Accounts, id.String()); there != nil {
		return *there, nil
	}
	one := revocation(id.String(), now)
	r.Accounts = append(r.Accounts, one)
	list, _ := f.dir.readTokens() // without it, all revocations of tokens stay
	return one, f.dir.writeRevocations(r, list, now)
}

// RestoreAccount takes back the revocation of an account. Its revoked tokens stay revoked.
func (f *Folder) RestoreAccount(id spiffeid.ID, now time.Time) error {
	lock, err := f.dir.lock()
	if err != nil {
		return err
	}
	defer lockfile.Release(lock)
	r, err := f.Revocations()
	if err != nil {
		return err
	}
	if find(r.Accounts, id.String()) == nil {
		return fmt.Errorf("%s is not revoked; 'isthmus ca show --dir %s' lists the revoked accounts", id, f.dir)
	}
	r.Accounts = slices.DeleteFunc(r.Accounts, func(one identity.Revocation) bool { return one.ID == id.String() })
	list, _ := f.dir.readTokens()
	return f.dir.writeRevocations(r, list, now)
}

// RevokeToken revokes one issued token. Revoking again keeps the first time.
func (f *Folder) RevokeToken(id string, now time.Time) (identity.Revocation, error) {
	lock, err := f.dir.lock()
	if err != nil {
		return identity.Revocation{}, err
	}
	defer lockfile.Release(lock)
	list, err := f.dir.readTokens()
	if err != nil {
		return identity.Revocation{}, err
	}
	t := list.find(id)
	if t == nil {
		return identity.Revocation{}, fmt.Errorf("no token %q was issued here; 'isthmus ca tokens --dir %s' lists the issued tokens", id, f.dir)
	}
	if t.over(now) {
		return identity.Revocation{}, fmt.Errorf("token %s expired at %s, and needs no revocation", id, t.Expires.Format(time.RFC3339))
	}
	r, err := f.Revocations()
	if err != nil {
		return identity.Revocation{}, err
	}
	if there := find(r.Tokens, id); there != nil {
		return *there, nil
	}
	one := revocation(id, now)
	r.Tokens = append(r.Tokens, one)
	return one, f.dir.writeRevocations(r, list, now)
}

func revocation(id string, now time.Time) identity.Revocation {
	return identity.Revocation{ID: id, Since: now.UTC().Truncate(time.Second)}
}

// clockSkew is more than the clocks of verifiers differ by.
const clockSkew = time.Hour

// over reports whether every verifier takes the token for expired.
func (t *Token) over(now time.Time) bool { return now.After(t.Expires.Add(clockSkew)) }

// find returns an issued token, or nil.
func (l tokenList) find(id string) *Token {
	if i := slices.IndexFunc(l.Tokens, func(t Token) bool { return t.ID == id }); i >= 0 {
		return &l.Tokens[i]
	}
	return nil
}

// find returns the revocation of an account or token, or nil.
func find(list []identity.Revocation, id string) *identity.Revocation {
	if i := slices.IndexFunc(list, func(r identity.Revocation) bool { return r.ID == id }); i >= 0 {
		return &list[i]
	}
	return nil
}
