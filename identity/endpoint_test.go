package identity_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// served starts a server with TLS, and returns an issuer with its keys there.
func served(t *testing.T, handler http.HandlerFunc) (*httptest.Server, identity.Issuer) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := write(t, t.TempDir()+"/ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return server, identity.Issuer{Issuer: kubernetes, KeysURL: server.URL + "/openid/v1/jwks", CAFile: ca}
}

// proves runs a verifier and returns the outcome of a token of the key k, and the problem of the issuer.
func proves(t *testing.T, issuer identity.Issuer) (problem string, err error) {
	t.Helper()
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuer}})
	defer run(t, v)()
	_, err = v.Prove(t.Context(), by("k", testKeys().p256))
	for _, found := range v.Problems() {
		problem += found.String() + "\n"
	}
	return problem, err
}

func TestKeysOfAnEndpoint(t *testing.T) {
	t.Parallel()
	set := keySet(jwk("k", testKeys().p256))
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirection to another host is followed") }))
	t.Cleanup(elsewhere.Close)
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		problem string
	}{
		"keys": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }, ""},
		"a redirection on the host": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/keys" {
				http.Redirect(w, r, "/keys", http.StatusFound)
				return
			}
			_, _ = w.Write(set)
		}, ""},
		"a redirection to another host": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "redirects to another place"},
		"a redirection to plaintext": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/keys", http.StatusFound)
		}, "redirects to another place"},
		"redirections without end": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "redirects without end"},
		"a failure":                {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "500 Internal Server Error"},
		"no rights":                {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "401 Unauthorized"},
		"not modified":             {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, "304 Not Modified"},
		"an answer without end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
					return
				}
			}
		}, "larger than 1048576 bytes"},
		"headers without end": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 1000 {
				w.Header().Add("X", strings.Repeat("x", 1000+i))
			}
		}, "cannot be read"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(set)
		}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, issuer := served(t, test.handler)
			problem, err := proves(t, issuer)
			switch {
			case test.problem == "" && (err != nil || problem != ""):
				t.Errorf("%v, %s", err, problem)
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem) || !strings.Contains(problem, test.problem)):
				t.Errorf("%v, %s; want %q", err, problem, test.problem)
			}
		})
	}
}

func TestEndpointIsAuthenticatedBothWays(t *testing.T) {
	t.Parallel()
	set := keySet(jwk("k", testKeys().p256))
	var asked string
	_, issuer := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization")
		_, _ = w.Write(set)
	})
	issuer.TokenFile = write(t, t.TempDir()+"/token", []byte("secret\n"))
	if problem, err := proves(t, issuer); err != nil || problem != "" || asked != "Bearer secret" {
		t.Errorf("%v, %s, asked with %q", err, problem, asked)
	}
	issuer.TokenFile = write(t, t.TempDir()+"/token", []byte("sec\nret"))
	if problem, err := proves(t, issuer); err == nil || strings.Contains(err.Error()+problem, "sec") {
		t.Errorf("a token of two lines: %v, %s", err, problem)
	}
	for _, change := range []func(*identity.Issuer){
		func(i *identity.Issuer) { i.TokenFile += ".missing" },
		func(i *identity.Issuer) { i.CAFile += ".missing" },
		func(i *identity.Issuer) { i.CAFile = i.TokenFile },
		func(i *identity.Issuer) { i.CAFile = "" }, // the machine's authorities know nothing of it
	} {
		one := issuer
		change(&one)
		if problem, err := proves(t, one); err == nil || !strings.Contains(problem, "cannot be read") {
			t.Errorf("%+v: %v, %s", one, err, problem)
		}
	}
}

// A stopped verifier waits for no endpoint.
func TestStopInterruptsARequest(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 1)
	_, issuer := served(t, func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	v := verifier(t, identity.Config{JWT: []identity.Issuer{issuer}})
	stop := run(t, v)
	<-began
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := v.Prove(ctx, by("k", testKeys().p256)); err == nil {
		t.Error("proven without keys")
	}
}

// An endpoint that hangs is given up, wherever in its answer it does. Other issuers and certificates
// do not wait for it.
func TestEndpointThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	set := keySet(jwk("k", testKeys().p256))
	other := issuerOf(t, jwk("k", testKeys().p256))
	other.Issuer = "https://local.example"
	issuers := []identity.Issuer{other}
	for name, handler := range map[string]http.HandlerFunc{
		"before its answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in its answer": func(w http.ResponseWriter, r *http.Request) {
			trickle(w, r, set[:1])
			<-r.Context().Done()
		},
		"byte by byte": func(w http.ResponseWriter, r *http.Request) {
			trickle(w, r, append([]byte(strings.Repeat(" ", 1<<10)), set...))
		},
	} {
		_, issuer := served(t, handler)
		issuer.Issuer = "https://" + strings.ReplaceAll(name, " ", "-") + ".example"
		issuers = append(issuers, issuer)
	}
	v := verifier(t, identity.Config{JWT: issuers})
	defer run(t, v)()
	others := []attempt{{"another issuer", local(), ""}, {"a certificate", identity.Evidence{Chains: chains(certificate(cart))}, ""}}
	try(t, v, others)
	until.NoError(t, 100*time.Millisecond, "the requests to be given up", func() error {
		unread := 0
		for _, problem := range v.Problems() {
			if !problem.Since.IsZero() {
				unread++
			}
		}
		if unread != len(issuers)-1 {
			return fmt.Errorf("the problems are %v", v.Problems())
		}
		return nil
	})
	try(t, v, others)
}

// trickle answers a request byte by byte.
func trickle(w http.ResponseWriter, r *http.Request, text []byte) {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for _, one := range text {
		_, _ = w.Write([]byte{one})
		_ = http.NewResponseController(w).Flush()
		select {
		case <-again.C:
		case <-r.Context().Done():
			return
		}
	}
}
