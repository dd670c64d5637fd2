package authority_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/authority"
)

// revoked returns the file of revocations.
func revoked(t *testing.T, dir string) (r struct {
	Accounts, Tokens []struct {
		ID    string
		Since time.Time
	}
},
) {
	t.Helper()
	if err := json.Unmarshal([]byte(content(t, dir)["revoked.json"]), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnAccountIsRevokedAndTakenBack(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	issue(t, a, authority.Grant{})
	issue(t, a, authority.Grant{Namespace: "shop", Account: "cart"})
	now, web := begin(), account(t, a, "web")
	for _, at := range []time.Time{now, now.Add(time.Minute)} { // the first time stays
		if r, err := a.RevokeAccount(web, at); err != nil || r.ID != web.String() || !r.Since.Equal(now) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if got := revoked(t, dir); len(got.Accounts) != 1 || got.Accounts[0].ID != web.String() || !got.Accounts[0].Since.Equal(now) || len(got.Tokens) != 0 {
		t.Errorf("the file has %+v", got)
	}
	listed, err := a.Tokens(now)
	if err != nil || len(listed) != 2 || !listed[0].Revoked.Equal(now) || !listed[1].Revoked.IsZero() {
		t.Errorf("listed are %+v, %v", listed, err)
	}
	text, _, err := a.Issue(authority.Grant{Namespace: "shop", Account: "web", TTL: time.Hour}, now)
	if err == nil || !strings.Contains(err.Error(), "isthmus ca revoke --undo --dir "+dir+" --namespace shop --account web") {
		t.Errorf("a revoked account gets a token: %q, %v", text, err)
	}
	if err := a.RestoreAccount(account(t, a, "cart"), now); err == nil || !strings.Contains(err.Error(), "isthmus ca show") {
		t.Errorf("an account that is not revoked is taken back: %v", err)
	}
	if err := a.RestoreAccount(web, now); err != nil {
		t.Fatal(err)
	}
	if got := revoked(t, dir); len(got.Accounts) != 0 {
		t.Errorf("the file has %+v", got)
	}
	issue(t, a, authority.Grant{})
}

func TestATokenIsRevokedUntilItExpires(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	now := begin()
	_, short := issueAt(t, a, authority.Grant{TTL: time.Hour}, now)
	_, long := issueAt(t, a, authority.Grant{TTL: 1000 * time.Hour}, now)
	for _, one := range []authority.Token{short, long} {
		if _, err := a.RevokeToken(one.ID, now); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := a.RevokeToken(short.ID, now.Add(time.Minute)); err != nil || !r.Since.Equal(now) {
		t.Errorf("revoked again: %+v, %v", r, err)
	}
	if _, err := a.RevokeToken("nonsense", now); err == nil || !strings.Contains(err.Error(), "isthmus ca tokens --dir "+dir) {
		t.Errorf("an unknown token is revoked: %v", err)
	}
	touch(t, a, now)
	if got := revoked(t, dir); len(got.Tokens) != 2 {
		t.Errorf("the file has %+v", got)
	}
	touch(t, a, now.Add(time.Hour+time.Minute)) // a slow clock still accepts it
	if got := revoked(t, dir); len(got.Tokens) != 2 {
		t.Errorf("right after the expiry the file has %+v", got)
	}
	touch(t, a, now.Add(2*time.Hour+time.Second))
	if got := revoked(t, dir); len(got.Tokens) != 1 || got.Tokens[0].ID != long.ID {
		t.Errorf("later the file has %+v", got)
	}
	if _, err := a.RevokeToken(short.ID, now.Add(3*time.Hour)); err == nil || !strings.Contains(err.Error(), "needs no revocation") {
		t.Errorf("an expired token is revoked: %v", err)
	}
}

// touch writes the file of revocations.
func touch(t *testing.T, a *authority.Authority, now time.Time) {
	t.Helper()
	id := account(t, a, "other")
	if _, err := a.RevokeAccount(id, now); err != nil {
		t.Fatal(err)
	}
	if err := a.RestoreAccount(id, now); err != nil {
		t.Fatal(err)
	}
}

// In an emergency an account is revoked although the file of tokens is damaged. No token
// becomes valid again by that.
func TestADamagedListOfTokensRestoresNoToken(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, []byte(`{"tokens": [{`), 0o600) },
		"lost":    os.Remove,
		"newer":   func(path string) error { return os.WriteFile(path, []byte(`{"tokens": [], "more": 1}`), 0o600) },
	} {
		a, dir := create(t)
		now := begin()
		_, token := issueAt(t, a, authority.Grant{TTL: 8760 * time.Hour}, now)
		if _, err := a.RevokeToken(token.ID, now); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "tokens.json")
		if err := damage(path); err != nil {
			t.Fatal(err)
		}
		late := now.Add(8759 * time.Hour)
		if _, err := a.RevokeAccount(account(t, a, "cart"), late); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := revoked(t, dir); len(got.Tokens) != 1 || len(got.Accounts) != 1 {
			t.Errorf("%s: the file has %+v", name, got)
		}
		if _, err := a.Tokens(now); name != "lost" && (err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore it from your backup")) {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.RestoreAccount(account(t, a, "cart"), now.Add(8762*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := revoked(t, dir); len(got.Tokens) != 0 {
			t.Errorf("%s: after every token has expired the file has %+v", name, got)
		}
	}
}
