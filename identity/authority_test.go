package identity_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/identity"
)

// authority makes the folder of an authority with the key k.
func authority(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, identity.TokenKeysFile), keySet(jwk("k", testKeys().p256)))
	return dir
}

func authorityToken(jti any) string {
	now := time.Now()
	claims := map[string]any{
		"iss": identity.AuthorityIssuer("cluster.local"), "aud": identity.Audience, "sub": cart, "jti": jti, "exp": now.Add(time.Hour).Unix(),
	}
	return token(jose.ES256, "k", testKeys().p256, with(claims, "jti", jti), nil)
}

func revoke(t *testing.T, dir, accounts, tokens string) {
	t.Helper()
	text := func(id string) string {
		if id == "" {
			return "[]"
		}
		return fmt.Sprintf(`[{"id":%q,"since":"2026-01-02T03:04:05Z"}]`, id)
	}
	write(t, filepath.Join(dir, identity.RevokedFile), []byte(`{"accounts":`+text(accounts)+`,"tokens":`+text(tokens)+`}`))
}

func TestAuthorityIsAnIssuer(t *testing.T) {
	t.Parallel()
	v := verifier(t, identity.Config{Authority: identity.Authority{Dir: authority(t), TTL: identity.DefaultTTL}})
	kubernetes := with(kubernetesClaims(), "iss", "spiffe://cluster.local")
	try(t, v, []attempt{
		{"a token", bearer(authorityToken("one")), ""},
		{"without an id", bearer(authorityToken(nil)), "claim jti is missing"},
		{"of another form", bearer(token(jose.ES256, "k", testKeys().p256, kubernetes, nil)), "not an identity of the form"},
	})
}

// run runs a verifier until the test ends.
func run(t *testing.T, v *identity.Verifier) (stop func()) {
	t.Helper()
	ctx, cancel := newContext(t)
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it stopped with %v", err)
		}
	}
}

func TestRevocationEndsWhatIsInUse(t *testing.T) {
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		dir := authority(t)
		v := verifier(t, identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}})
		defer run(t, v)()
		byToken, byCertificate := bearer(authorityToken("one")), identity.Evidence{Chains: chains(certificate(cart))}
		other := identity.Evidence{Chains: chains(certificate("spiffe://cluster.local/ns/shop/sa/other"))}
		var mu sync.Mutex
		ended := map[string]error{}
		for name, e := range map[string]identity.Evidence{"token": byToken, "certificate": byCertificate, "other": other, "second": bearer(authorityToken("two"))} {
			release := v.Keep(must(v.Prove(t.Context(), e)), func(err error) {
				mu.Lock()
				defer mu.Unlock()
				ended[name] = errors.Join(ended[name], err)
			})
			defer release() //nolint:gocritic // at the end of the test
		}
		released := must(v.Prove(t.Context(), byToken))
		v.Keep(released, func(error) { t.Error("a released proof ends") })()

		revoke(t, dir, "", "one")
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if len(ended) != 1 || ended["token"] == nil || !strings.Contains(ended["token"].Error(), `the token "one" of `+cart+` is revoked since 2026-01-02T03:04:05Z`) {
			t.Fatalf("after the token: %v", ended)
		}
		try(t, v, []attempt{{"the revoked token", byToken, "is revoked"}, {"another token", bearer(authorityToken("two")), ""}, {"its certificate", byCertificate, ""}})

		revoke(t, dir, cart, "")
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if len(ended) != 3 || ended["other"] != nil {
			t.Fatalf("after the account: %v", ended)
		}
		try(t, v, []attempt{{"the account's token", bearer(authorityToken("two")), "account " + cart + " is revoked"}, {"its certificate", byCertificate, "is revoked"}})

		revoke(t, dir, "", "")
		time.Sleep(time.Second + time.Millisecond)
		try(t, v, []attempt{{"with no revocations", byToken, ""}})
		time.Sleep(2 * time.Hour) // each of them was released or has ended, once
		synctest.Wait()
		for name, err := range ended {
			if lines := strings.Count(err.Error(), "\n"); lines > 0 {
				t.Errorf("%s ended %d times", name, lines+1)
			}
		}
	})
}

// A verifier forgets the proofs that were released.
func TestReleasedProofsAreForgotten(t *testing.T) {
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		dir := authority(t)
		var log bytes.Buffer
		v, err := identity.New(identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}, "istio-system", slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, v)
		proof := must(v.Prove(t.Context(), bearer(authorityToken("one"))))
		v.Keep(proof, func(error) { t.Error("a released proof ends") })()
		revoke(t, dir, cart, "")
		time.Sleep(2 * time.Second)
		stop()
		if text := log.String(); text != "" {
			t.Errorf("no stream ended, and the log has %s", text)
		}
	})
}

// A proof that is revoked between Prove and Keep ends as well.
func TestRevokedProofIsNotKept(t *testing.T) {
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		dir := authority(t)
		v := verifier(t, identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}})
		defer run(t, v)()
		proof := must(v.Prove(t.Context(), bearer(authorityToken("one"))))
		revoke(t, dir, cart, "")
		time.Sleep(time.Second + time.Millisecond)
		var ended error
		defer v.Keep(proof, func(err error) { ended = err })()
		synctest.Wait()
		if ended == nil {
			t.Error("the proof is kept")
		}
	})
}

func TestUnreadableRevocationsStayInEffect(t *testing.T) {
	testKeys()
	for name, text := range map[string]string{
		"no JSON": "{", "no account": `{"accounts":[{"id":"cart"}]}`, "no token": `{"tokens":[{"since":"2026-01-02T03:04:05Z"}]}`, "no list": `{"tokens":{}}`, "empty": "",
		"no time": `{"tokens":[{"id":"a","since":"yesterday"}]}`, "null": "null", "misspelled": `{"account":[]}`, "in capitals": `{"Accounts":[]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := authority(t)
			revoke(t, dir, cart, "")
			config := identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}
			v := verifier(t, config)
			defer run(t, v)()
			path := filepath.Join(dir, identity.RevokedFile)
			write(t, path, []byte(text))
			time.Sleep(time.Second + time.Millisecond)
			try(t, v, []attempt{{name, identity.Evidence{Chains: chains(certificate(cart))}, "is revoked"}})
			if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].String(), "revocations: since 2000-01-01T00:00:01Z they cannot be read: "+path) {
				t.Errorf("%s: problems %q", name, problems)
			}
			if _, err := identity.New(config, "istio-system", testLog()); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: a verifier starts without its revocations: %v", name, err)
			}
			if config.Check() == nil {
				t.Errorf("%s: the check finds nothing", name)
			}
			revoke(t, dir, "", "")
			time.Sleep(time.Second + time.Millisecond)
			try(t, v, []attempt{{name + " and repaired", identity.Evidence{Chains: chains(certificate(cart))}, ""}})
			if problems := v.Problems(); len(problems) > 0 {
				t.Errorf("%s: problems %q", name, problems)
			}
		})
	}
}

// A list that was there and is missing takes nothing back, until there is another one. A folder
// without a list is one of an earlier version, in which nothing was revoked yet.
func TestMissingRevocationsStayInEffect(t *testing.T) {
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		dir := authority(t)
		v := verifier(t, identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}})
		defer run(t, v)()
		time.Sleep(2*time.Second + time.Millisecond)
		shown := identity.Evidence{Chains: chains(certificate(cart))}
		try(t, v, []attempt{{"without a list", shown, ""}})
		if problems := v.Problems(); len(problems) > 0 {
			t.Errorf("without a list: %q", problems)
		}
		revoke(t, dir, cart, "")
		time.Sleep(time.Second)
		path := filepath.Join(dir, identity.RevokedFile)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		try(t, v, []attempt{{"after the list disappeared", shown, "is revoked"}})
		problems := v.Problems()
		if len(problems) != 1 || problems[0].About != "revocations" || !problems[0].Since.Equal(time.Date(2000, 1, 1, 0, 0, 4, 0, time.UTC)) ||
			!strings.Contains(problems[0].Reason, path) || !strings.Contains(problems[0].Reason, "the last ones stay in effect") || !strings.Contains(problems[0].Next, "restore it from a backup") {
			t.Errorf("problems: %+v", problems)
		}
		revoke(t, dir, "", "two")
		time.Sleep(time.Second)
		try(t, v, []attempt{{"after another list came", shown, ""}, {"its token", bearer(authorityToken("two")), "is revoked"}})
		if problems := v.Problems(); len(problems) > 0 {
			t.Errorf("with another list: %q", problems)
		}
	})
}

// The list of the configuration counts beside that of an authority, and without one. Without
// issuers it makes no token acceptable.
func TestListsOfRevocationsAddUp(t *testing.T) {
	k := testKeys()
	const foreign, odd = "spiffe://other.example/ns/shop/sa/cart", "spiffe://cluster.local/ns/shop/sa/WEB_1"
	for name, config := range map[string]identity.Config{
		"alone":             {},
		"with an issuer":    {JWT: []identity.Issuer{issuerOf(t, jwk("k", k.p256))}},
		"with an authority": {Authority: identity.Authority{Dir: authority(t), TTL: identity.DefaultTTL}},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			config.Revocations = write(t, filepath.Join(dir, identity.RevokedFile), []byte("{}"))
			v := verifier(t, config)
			defer run(t, v)()
			if v.TakesTokens() != config.Enabled() {
				t.Errorf("%s: it takes tokens: %t", name, v.TakesTokens())
			}
			unread := bearer("nonsense")
			unread.Chains = chains(certificate(cart))
			if _, err := v.Prove(t.Context(), unread); (err != nil) != config.Enabled() {
				t.Errorf("%s: a token that nobody issued: %v", name, err)
			}
			ended := map[string]int{}
			var mu sync.Mutex
			for _, id := range []string{cart, foreign, odd} {
				proof := must(v.Prove(t.Context(), identity.Evidence{Chains: chains(certificate(id))}))
				defer v.Keep(proof, func(error) { //nolint:gocritic // at the end of the test
					mu.Lock()
					defer mu.Unlock()
					ended[id]++
				})()
			}
			write(t, config.Revocations, fmt.Appendf(nil, `{"accounts":[{"id":%q},{"id":%q}]}`, foreign, odd))
			if config.Authority.Dir != "" {
				revoke(t, config.Authority.Dir, cart, "")
			}
			time.Sleep(time.Second + time.Millisecond)
			synctest.Wait()
			want := map[string]int{foreign: 1, odd: 1}
			rejected := ""
			if config.Authority.Dir != "" {
				want[cart], rejected = 1, "is revoked"
			}
			if diff := cmp.Diff(want, ended); diff != "" {
				t.Errorf("%s: ended (-want +got):\n%s", name, diff)
			}
			try(t, v, []attempt{
				{name + ": another trust domain", identity.Evidence{Chains: chains(certificate(foreign))}, "account " + foreign + " is revoked"},
				{name + ": not a name of Kubernetes", identity.Evidence{Chains: chains(certificate(odd))}, "account " + odd + " is revoked"},
				{name + ": the authority's", identity.Evidence{Chains: chains(certificate(cart))}, rejected},
			})
			if err := os.Remove(config.Revocations); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + time.Millisecond)
			try(t, v, []attempt{{name + ": without the list", identity.Evidence{Chains: chains(certificate(foreign))}, "is revoked"}})
			if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].Reason, config.Revocations) {
				t.Errorf("%s: problems %q", name, problems)
			}
		})
	}
}

// The list that the configuration names has to be there at the start, also if it is the list of
// the authority.
func TestNamedListOfRevocationsIsRequired(t *testing.T) {
	t.Parallel()
	dir := authority(t)
	list := filepath.Join(dir, identity.RevokedFile)
	for name, config := range map[string]identity.Config{
		"alone": {Revocations: list}, "of an authority": {Revocations: list, Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}},
	} {
		for _, text := range []string{"", "x"} {
			if text != "" {
				write(t, list, []byte(text))
			}
			_, err := identity.New(config, "istio-system", testLog())
			for _, err := range []error{err, config.Check()} {
				if err == nil || !strings.HasPrefix(err.Error(), "revocations: ") || strings.Count(err.Error(), list) != 1 || !strings.Contains(err.Error(), "restore it from a backup") {
					t.Errorf("%s: with %q: %v", name, text, err)
				}
			}
		}
		write(t, list, []byte("{}"))
		verifier(t, config)
		if err := config.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(list); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "unmounted"), list); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.New(identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}, "istio-system", testLog()); err == nil {
		t.Error("a link that leads nowhere counts as an empty list")
	}
}

// A folder that is not mounted does not take revocations back.
func TestMissingFolderIsNotAnEmptyOne(t *testing.T) {
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		dir := authority(t)
		revoke(t, dir, cart, "")
		v := verifier(t, identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}})
		defer run(t, v)()
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		try(t, v, []attempt{{"the account", identity.Evidence{Chains: chains(certificate(cart))}, "is revoked"}})
		if problems := v.Problems(); len(problems) != 2 {
			t.Errorf("problems: %q", problems)
		}
	})
}

func TestStreamsEndAGraceAfterTheirToken(t *testing.T) {
	k := testKeys()
	synctest.Test(t, func(t *testing.T) {
		v := verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.p256))}})
		proof := must(v.Prove(t.Context(), bearer(token(jose.ES256, "k", k.p256, kubernetesClaims(), nil))))
		began := time.Now()
		var ended time.Duration
		var why error
		defer v.Keep(proof, func(err error) { ended, why = time.Since(began), err })()
		v.Keep(proof, func(error) { t.Error("a released proof ends") })()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if ended != time.Hour+identity.Grace || why == nil || !strings.Contains(why.Error(), "expired at 2000-01-01T01:00:00Z") {
			t.Errorf("it ended after %s: %v", ended, why)
		}
	})
}

// The connection of a certificate watches it, and without a proof there is nothing to end.
func TestProofsWithoutEndAreKept(t *testing.T) {
	k := testKeys()
	synctest.Test(t, func(t *testing.T) {
		for _, v := range []*identity.Verifier{nil, verifier(t, identity.Config{JWT: []identity.Issuer{issuerOf(t, jwk("k", k.p256))}})} {
			for _, proof := range []identity.Proof{{}, must(v.Prove(t.Context(), identity.Evidence{Chains: chains(certificate(cart))}))} {
				release := v.Keep(proof, func(err error) { t.Errorf("%+v ended: %v", proof, err) })
				time.Sleep(366 * 24 * time.Hour)
				release()
				release()
			}
		}
	})
}

func TestReadOfRevocations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, identity.RevokedFile)
	read := identity.Revocations{Tokens: []identity.Revocation{{ID: "old"}}}
	if err := read.Read(path); err != nil || read.Accounts != nil || read.Tokens != nil {
		t.Errorf("a missing file: %+v, %v", read, err)
	}
	revoke(t, dir, cart, "one")
	if err := read.Read(path); err != nil || len(read.Accounts) != 1 || read.Accounts[0].ID != cart || read.Tokens[0].ID != "one" || read.Tokens[0].Since.Year() != 2026 {
		t.Errorf("%+v, %v", read, err)
	}
	write(t, path, []byte("x"))
	if err := read.Read(path); err == nil || len(read.Accounts) != 1 {
		t.Errorf("an invalid file: %+v, %v", read, err)
	}
	if read.Read(filepath.Join(dir, "missing", identity.RevokedFile)) == nil {
		t.Error("a missing folder has no revocations")
	}
}
