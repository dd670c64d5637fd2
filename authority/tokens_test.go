package authority_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/authority"
)

// issue issues a token for shop/web, unless the grant says otherwise.
func issue(t *testing.T, a *authority.Authority, g authority.Grant) (string, authority.Token) {
	t.Helper()
	return issueAt(t, a, g, begin())
}

func issueAt(t *testing.T, a *authority.Authority, g authority.Grant, now time.Time) (string, authority.Token) {
	t.Helper()
	if g.Namespace == "" {
		g.Namespace, g.Account = "shop", "web"
	}
	if g.TTL == 0 {
		g.TTL = authority.DefaultTTL
	}
	text, entry, err := a.Issue(g, now)
	if err != nil {
		t.Fatal(err)
	}
	return text, entry
}

func account(t *testing.T, a *authority.Authority, name string) spiffeid.ID {
	t.Helper()
	id, err := a.AccountID("shop", name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestATokenIsVerifiedByThePublishedKeys(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	now := begin()
	text, entry := issueAt(t, a, authority.Grant{Addresses: []string{"10.1.0.7", "10.0.0.0/24", "2001:db8::/64", "10.0.0.0/24"}, TTL: time.Hour}, now)

	file, err := os.ReadFile(filepath.Join(dir, "token-keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(file, &set); err != nil {
		t.Fatal(err)
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	head := token.Headers[0]
	keys := set.Key(head.KeyID)
	if len(keys) != 1 || !keys[0].IsPublic() || keys[0].Use != "sig" || keys[0].Algorithm != "ES256" || keys[0].KeyID != a.KeyID() {
		t.Fatalf("%d keys for %q: %s", len(keys), head.KeyID, file)
	}
	if head.JSONWebKey != nil || head.ExtraHeaders[jose.HeaderType] != "JWT" {
		t.Errorf("the header is %+v", head)
	}
	var got map[string]any
	if err := token.Claims(keys[0].Key, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"iss": "spiffe://cluster.local", "sub": "spiffe://cluster.local/ns/shop/sa/web", "aud": []any{"isthmus"}, "jti": entry.ID,
		"iat": float64(now.Unix()), "nbf": float64(now.Unix()), "exp": float64(now.Add(time.Hour).Unix()),
		"address": []any{"10.0.0.0/24", "10.1.0.7/32", "2001:db8::/64"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	listed, err := a.Tokens(now)
	if err != nil || len(listed) != 1 || listed[0].Identity != want["sub"] {
		t.Fatalf("listed are %+v, %v", listed, err)
	}
	if diff := cmp.Diff(entry, listed[0].Token, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	for name, file := range content(t, dir) {
		if signature := text[strings.LastIndex(text, ".")+1:]; strings.Contains(file, signature) {
			t.Errorf("%s contains the token", name)
		}
	}
	if other, _ := issue(t, a, authority.Grant{}); strings.Contains(claimsOf(t, other), "address") {
		t.Errorf("a token without blocks has %s", claimsOf(t, other))
	}
}

func claimsOf(t *testing.T, text string) string {
	t.Helper()
	signed, err := jose.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	return string(signed.UnsafePayloadWithoutVerification())
}

func TestEveryBadValueIsNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		grant authority.Grant
		want  []string
	}{
		{authority.Grant{}, []string{"namespace", "account", "ttl"}},
		{authority.Grant{Namespace: "Shop", Account: "a/b", TTL: time.Second, Addresses: []string{"x", "10.0.0.0/24", ""}}, []string{"namespace", "account", "address", "address", "ttl"}},
		{authority.Grant{Namespace: "shop", Account: "..", TTL: time.Minute}, []string{"account"}},
		{authority.Grant{Namespace: "shop", Account: "web", TTL: time.Minute - 1}, []string{"ttl"}},
		{authority.Grant{Namespace: "shop", Account: "web", TTL: 8760*time.Hour + 1}, []string{"ttl"}},
		{authority.Grant{Namespace: "shop", Account: "web", TTL: time.Minute, Addresses: []string{"10.0.0.1/24"}}, []string{"address"}},
		{authority.Grant{Namespace: "shop", Account: "web", TTL: time.Minute, Addresses: []string{"fe80::1%eth0"}}, []string{"address"}},
		{authority.Grant{Namespace: "shop", Account: "web", TTL: time.Minute, Addresses: []string{"::ffff:10.0.0.1"}}, []string{"address"}},
		{authority.Grant{Namespace: "shop", Account: "web", TTL: 8760 * time.Hour, Addresses: many(64)}, nil},
		{authority.Grant{Namespace: "shop", Account: "web", TTL: 8760 * time.Hour, Addresses: many(65)}, []string{"address"}},
	} {
		var got []string
		for _, one := range test.grant.Check() {
			got = append(got, one.Field)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, not %q", test.grant, got, test.want)
		}
	}
	a, dir := create(t)
	if text, _, err := a.Issue(authority.Grant{}, begin()); err == nil || text != "" {
		t.Errorf("a token for nothing: %q, %v", text, err)
	}
	if _, there := content(t, dir)["tokens.json"]; there {
		t.Error("a token that was not issued is listed")
	}
}

func many(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("10.0.%d.0/24", i))
	}
	return list
}

func TestTokensIssuedAtOnceAreAllListed(t *testing.T) {
	t.Parallel()
	_, dir := create(t)
	const n = 20
	ids := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			a, err := authority.Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			_, entry, err := a.Issue(authority.Grant{Namespace: "shop", Account: "web", TTL: time.Hour}, begin())
			if err != nil {
				t.Error(err)
			}
			ids[i] = entry.ID
		})
	}
	all.Wait()
	f, err := authority.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := f.Tokens(begin())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, one := range listed {
		got[one.ID] = true
	}
	for _, id := range ids {
		if !got[id] {
			t.Errorf("token %s is not listed", id)
		}
	}
	if len(got) != n {
		t.Errorf("%d tokens are listed: %v", len(got), slices.Sorted(maps.Keys(got)))
	}
}

// A token that cannot be listed is not handed out, and the old list stays.
func TestAFailedWriteLeavesTheOldContent(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	issue(t, a, authority.Grant{})
	before := content(t, dir)
	obstacle := filepath.Join(dir, ".tokens.json.new")
	if err := os.MkdirAll(filepath.Join(obstacle, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err := a.Issue(authority.Grant{Namespace: "shop", Account: "web", TTL: time.Hour}, begin())
	if err == nil || !strings.Contains(err.Error(), "tokens.json cannot be written, and is unchanged") {
		t.Errorf("a token without room for its entry: %v", err)
	}
	if diff := cmp.Diff(before, content(t, dir)); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	issue(t, a, authority.Grant{})
	if listed, err := a.Tokens(begin()); len(listed) != 2 {
		t.Errorf("%d tokens, %v", len(listed), err)
	}
}

func TestExpiredTokensLeaveTheListAndLaterTheFile(t *testing.T) {
	t.Parallel()
	a, dir := create(t)
	now := begin()
	_, old := issueAt(t, a, authority.Grant{TTL: time.Hour}, now)
	if listed, err := a.Tokens(now.Add(time.Hour)); len(listed) != 0 || err != nil {
		t.Errorf("an expired token is listed: %v, %v", listed, err)
	}
	for _, test := range []struct {
		after time.Duration
		want  bool
	}{{time.Hour + 7*24*time.Hour - time.Second, true}, {time.Hour + 7*24*time.Hour, false}} {
		issueAt(t, a, authority.Grant{}, now.Add(test.after))
		if got := strings.Contains(content(t, dir)["tokens.json"], old.ID); got != test.want {
			t.Errorf("%s after it was issued it is in the file: %t", test.after, got)
		}
	}
}
