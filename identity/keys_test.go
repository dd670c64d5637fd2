package identity_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/isthmus-mesh/isthmus/identity"
)

// answers is an endpoint with keys that answers as it is set.
type answers struct {
	mu     sync.Mutex
	text   []byte
	err    error
	hangs  bool
	panics bool
	takes  time.Duration
	began  []time.Time
	open   int // requests in flight
	most   int // requests in flight at once
}

func (a *answers) fetch(ctx context.Context) ([]byte, error) {
	a.mu.Lock()
	a.began = append(a.began, time.Now())
	a.open++
	a.most = max(a.most, a.open)
	text, err, hangs, takes, panics := a.text, a.err, a.hangs, a.takes, a.panics
	a.mu.Unlock()
	defer func() { a.mu.Lock(); a.open--; a.mu.Unlock() }()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if panics {
		panic("no such state")
	}
	time.Sleep(takes)
	return text, err
}

func (a *answers) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *answers) requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.began)
}

// remote runs a test with a verifier of an issuer with keys from an endpoint, and of another
// issuer, whose keys are in a file.
func remote(t *testing.T, from *answers, test func(t *testing.T, v *identity.Verifier)) {
	t.Helper()
	k := testKeys()
	synctest.Test(t, func(t *testing.T) {
		local := issuerOf(t, jwk("k", k.p256))
		local.Issuer = "https://local.example"
		v := verifier(t, identity.Config{JWT: []identity.Issuer{{Issuer: kubernetes, KeysURL: "https://127.0.0.1:1/keys"}, local}})
		v.Replace(kubernetes, from.fetch)
		defer run(t, v)()
		test(t, v)
	})
}

func by(id string, key any) identity.Evidence {
	return bearer(token(algorithmOf(key), id, key, kubernetesClaims(), nil))
}

func local() identity.Evidence {
	return bearer(token(jose.ES256, "k", testKeys().p256, with(kubernetesClaims(), "iss", "https://local.example"), nil))
}

func TestKeysAreRefreshed(t *testing.T) {
	k := testKeys()
	from := &answers{text: keySet(jwk("old", k.p256))}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		try(t, v, []attempt{{"at the start", by("old", k.p256), ""}})
		time.Sleep(time.Minute)
		from.set(func() { from.text = keySet(jwk("new", k.p256)) })
		try(t, v, []attempt{{"the old key until the refresh", by("old", k.p256), ""}})
		time.Sleep(4*time.Minute + time.Second)
		try(t, v, []attempt{{"the old key after it", by("old", k.p256), "no usable key"}})
		if n := from.requests(); n != 2 {
			t.Errorf("%d requests in five minutes", n)
		}
	})
}

func TestUnknownKeyIsRequestedOnce(t *testing.T) {
	k := testKeys()
	from := &answers{text: keySet(jwk("old", k.p256))}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		time.Sleep(time.Minute)
		from.set(func() { from.text, from.takes = keySet(jwk("old", k.p256), jwk("new", k.p256)), 2*time.Second })
		began := time.Now()
		var streams sync.WaitGroup
		for range 100 {
			streams.Go(func() {
				if _, err := v.Prove(t.Context(), by("new", k.p256)); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		try(t, v, []attempt{{"a known key meanwhile", by("old", k.p256), ""}, {"another issuer", local(), ""}})
		if since := time.Since(began); since != time.Second {
			t.Errorf("they waited %s", since-time.Second)
		}
		streams.Wait()
		if since := time.Since(began); since != 2*time.Second || from.requests() != 2 {
			t.Errorf("%d requests, and a wait of %s", from.requests()-1, since)
		}
	})
}

func TestUnknownKeysCauseFewRequests(t *testing.T) {
	k := testKeys()
	from := &answers{text: keySet(jwk("old", k.p256)), takes: 50 * time.Millisecond}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		began := time.Now()
		for i := 0; time.Since(began) < 3*time.Minute; i++ {
			if _, err := v.Prove(t.Context(), by(fmt.Sprint("unknown", i), k.p256)); err == nil {
				t.Fatal("an unknown key is taken")
			}
			time.Sleep(200 * time.Millisecond)
		}
		from.mu.Lock()
		defer from.mu.Unlock()
		for i := range from.began[1:] {
			if pause := from.began[i+1].Sub(from.began[i]); pause < 10*time.Second {
				t.Fatalf("two requests within %s", pause)
			}
		}
		if n := len(from.began); n < 17 || n > 19 || from.most != 1 {
			t.Errorf("%d requests in 3 minutes, %d at once", n, from.most)
		}
	})
}

func TestHangingEndpointCostsNobodyElse(t *testing.T) {
	k := testKeys()
	from := &answers{hangs: true}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		began := time.Now()
		try(t, v, []attempt{{"another issuer", local(), ""}, {"a certificate", identity.Evidence{Chains: chains(certificate(cart))}, ""}})
		if time.Since(began) > 0 {
			t.Error("others waited")
		}
		try(t, v, []attempt{{"its own", by("k", k.p256), "have not been read yet"}})
		if since := time.Since(began); since != 5*time.Second {
			t.Errorf("it waited for %s", since)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, err := v.Prove(ctx, by("k", k.p256)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("a client that leaves: %v after %s", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].String(), kubernetes) || !strings.Contains(problems[0].String(), "since 2000-01-01T00:00:10Z") {
			t.Errorf("problems: %q", problems)
		}
		from.set(func() { from.hangs, from.text = false, keySet(jwk("k", k.p256)) })
		time.Sleep(10 * time.Minute)
		try(t, v, []attempt{{"when it answers again", by("k", k.p256), ""}})
		if problems := v.Problems(); len(problems) > 0 {
			t.Errorf("problems: %q", problems)
		}
	})
}

func TestKeysAreUsedForADayAtMost(t *testing.T) {
	k := testKeys()
	from := &answers{text: keySet(jwk("k", k.p256))}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		time.Sleep(time.Second)
		from.set(func() { from.err = errors.New("it is down") })
		time.Sleep(24*time.Hour - 2*time.Second)
		try(t, v, []attempt{{"within a day", by("k", k.p256), ""}, {"an unknown key", by("new", k.p256), "cannot be read since 2000-01-01T00:05:00Z: it is down"}})
		time.Sleep(2 * time.Second)
		try(t, v, []attempt{{"after a day", by("k", k.p256), "cannot be read since 2000-01-01T00:05:00Z, and are used for 24h0m0s at most: it is down"}, {"another issuer", local(), ""}})
		if n := from.requests(); n < 24*12 || n > 24*25 {
			t.Errorf("%d requests of a failing endpoint in a day", n)
		}
		from.set(func() { from.err = nil })
		time.Sleep(10 * time.Minute)
		try(t, v, []attempt{{"when it works again", by("k", k.p256), ""}})
	})
}

func TestInvalidSetsKeepTheLastKeys(t *testing.T) {
	k := testKeys()
	many := make([]jose.JSONWebKey, 101)
	for i := range many {
		many[i] = jwk(fmt.Sprint(i), k.p256)
	}
	for name, test := range map[string]struct{ text, problem string }{
		"no JSON": {"<html>", "the JSON is invalid"}, "no set": {"{}", "no list of keys"}, "null": {"null", "no list of keys"}, "null for keys": {`{"keys":null}`, "no list of keys"},
		"an object for keys": {`{"keys":{}}`, "the JSON is invalid"}, "nothing": {"", "the JSON is invalid"}, "deep": {strings.Repeat(`{"keys":`, 200_000), "the JSON is invalid"},
		"deep keys":  {`{"keys":[` + strings.Repeat("[", 400_000) + strings.Repeat("]", 400_000) + "}", "the JSON is invalid"},
		"many keys":  {string(keySet(many...)), "101 keys; 100 is the limit"},
		"keys twice": {`{"keys":[],"keys":[]}`, "the JSON is invalid"},
	} {
		from := &answers{text: keySet(jwk("k", k.p256))}
		remote(t, from, func(t *testing.T, v *identity.Verifier) {
			time.Sleep(time.Second)
			from.set(func() { from.text = []byte(test.text) })
			time.Sleep(5 * time.Minute)
			try(t, v, []attempt{{name, by("k", k.p256), ""}})
			if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].String(), test.problem) {
				t.Errorf("%s: problems %q", name, problems)
			}
		})
	}
	from := &answers{text: keySet(many[:100]...)}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		try(t, v, []attempt{{"100 keys", by("99", k.p256), ""}})
	})
	deep := `{"keys":[{"kty":"EC","kid":"deep","x":` + strings.Repeat("[", 400_000) + strings.Repeat("]", 400_000) + "}]}"
	from = &answers{text: []byte(deep)}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		try(t, v, []attempt{{"a deep key", by("deep", k.p256), "no usable key"}})
	})
}

// An issuer can withdraw all its keys: an empty list is an answer.
func TestEmptySetWithdrawsAllKeys(t *testing.T) {
	k := testKeys()
	from := &answers{text: keySet(jwk("k", k.p256))}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		time.Sleep(time.Second)
		from.set(func() { from.text = []byte(`{"keys":[]}`) })
		time.Sleep(5 * time.Minute)
		try(t, v, []attempt{{"the old key", by("k", k.p256), "no usable key"}})
		if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].String(), "no key for signatures") {
			t.Errorf("problems: %q", problems)
		}
	})
}

func TestKeysOfAFileAreRotated(t *testing.T) {
	t.Parallel()
	k := testKeys()
	issuer := issuerOf(t, jwk("old", k.p256))
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuer}})
	try(t, v, []attempt{{"the old key", by("old", k.p256), ""}})
	write(t, issuer.KeysFile, keySet(jwk("new", k.p256)))
	try(t, v, []attempt{{"the new key", by("new", k.p256), ""}, {"the old key", by("old", k.p256), "no usable key"}})
	// Overwritten in place, with as many bytes and within a tick of the file system's clock.
	later := time.Now().Add(time.Hour)
	for _, id := range []string{"two", "one"} {
		if err := errors.Join(os.WriteFile(issuer.KeysFile, keySet(jwk(id, k.p256)), 0o600), os.Chtimes(issuer.KeysFile, later, later)); err != nil {
			t.Fatal(err)
		}
		try(t, v, []attempt{{"overwritten with " + id, by(id, k.p256), ""}})
	}
	try(t, v, []attempt{{"overwritten", by("one", k.p256), ""}})
	write(t, issuer.KeysFile, []byte("x"))
	try(t, v, []attempt{{"an invalid file", by("one", k.p256), ""}})
	if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].String(), issuer.KeysFile) {
		t.Errorf("problems: %q", problems)
	}
	write(t, issuer.KeysFile, []byte(strings.Repeat(" ", 1<<20)+string(keySet(jwk("new", k.p256)))))
	try(t, v, []attempt{{"a file that is too large", by("one", k.p256), ""}})
	write(t, issuer.KeysFile, []byte(`{"keys":[]}`))
	try(t, v, []attempt{{"withdrawn", by("one", k.p256), "no usable key"}})
}

func TestFileThatIsGoneIsUsedForADay(t *testing.T) {
	k := testKeys()
	synctest.Test(t, func(t *testing.T) {
		issuer := issuerOf(t, jwk("k", k.p256))
		settled := time.Now().Add(-time.Hour) // the file's own time is of another clock
		if err := os.Chtimes(issuer.KeysFile, settled, settled); err != nil {
			t.Fatal(err)
		}
		v := verifier(t, identity.Config{JWT: []identity.Issuer{issuer}})
		defer run(t, v)()
		time.Sleep(48 * time.Hour)
		if err := os.Remove(issuer.KeysFile); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23 * time.Hour)
		try(t, v, []attempt{{"within a day", by("k", k.p256), ""}})
		time.Sleep(time.Hour + time.Minute)
		try(t, v, []attempt{{"after a day", by("k", k.p256), "are used for 24h0m0s at most"}})
	})
}

// The keys of one issuer that cannot be read keep no process from its start.
func TestMissingKeysAreAProblemOfTheirIssuer(t *testing.T) {
	t.Parallel()
	k := testKeys()
	good := issuerOf(t, jwk("k", k.p256))
	bad := identity.Issuer{Issuer: "https://bad.example", KeysFile: t.TempDir() + "/missing.json"}
	v := verifier(t, identity.Config{JWT: []identity.Issuer{bad, good}})
	claims := with(kubernetesClaims(), "iss", bad.Issuer)
	try(t, v, []attempt{{"another issuer", by("k", k.p256), ""}, {"its own", bearer(token(jose.ES256, "k", k.p256, claims, nil)), "cannot be read since"}})
	if problems := v.Problems(); len(problems) != 1 || !strings.Contains(problems[0].String(), bad.Issuer) {
		t.Errorf("problems: %q", problems)
	}
}

func algorithmOf(key any) jose.SignatureAlgorithm {
	if key, ok := key.(*ecdsa.PrivateKey); ok && key.Curve == elliptic.P521() {
		return jose.ES512
	}
	return jose.ES256
}

// TestAPanicKeepsTheLastKeys has a reader of keys panic, in a request and in a file.
func TestAPanicKeepsTheLastKeys(t *testing.T) {
	k := testKeys()
	from := &answers{text: keySet(jwk("k", k.p256))}
	remote(t, from, func(t *testing.T, v *identity.Verifier) {
		try(t, v, []attempt{{"before", by("k", k.p256), ""}})
		from.set(func() { from.panics = true })
		time.Sleep(6 * time.Minute)
		try(t, v, []attempt{{"after", by("k", k.p256), ""}})
		problems := v.Problems()
		if len(problems) != 1 || !strings.Contains(problems[0].Reason, "reading it panicked: no such state") || problems[0].Since.IsZero() || problems[0].Next == "" {
			t.Errorf("problems: %q", problems)
		}
		from.set(func() { from.panics = false })
		time.Sleep(6 * time.Minute)
		if problems := v.Problems(); len(problems) > 0 {
			t.Errorf("problems: %q", problems)
		}
	})
	path := write(t, filepath.Join(t.TempDir(), "keys.json"), keySet())
	if err := identity.Parse(path, func([]byte) { panic("no such state") }); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("a file: %v", err)
	}
}
