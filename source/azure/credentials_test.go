package azure_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/azure"
	"github.com/isthmus-mesh/isthmus/source/machines"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// directory is Azure with what gives out tokens, which last ten minutes. It takes one
// secret, or one token of a service account, or whoever asks on the machine itself as an
// identity.
type directory struct {
	*azureOf
	secret atomic.Pointer[string]
	logins atomic.Int32
	busy   atomic.Bool // it wants a pause of five minutes
}

// Do implements [policy.Transporter].
func (d *directory) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "169.254.169.254" {
		return d.ofTheMachine(r)
	}
	if r.URL.Host != "login.microsoftonline.com" {
		if r.Header.Get("Authorization") != "Bearer of-"+*d.secret.Load() {
			return status(401, "InvalidAuthenticationToken")(request{Request: r})
		}
		return d.azureOf.Do(r)
	}
	base := "https://" + r.URL.Host + "/tenant"
	switch {
	case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
		return body(`{"tenant_discovery_endpoint": "` + base + `/v2.0/.well-known/openid-configuration", "metadata": []}`)(request{Request: r})
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		return body(`{"token_endpoint": "` + base + `/oauth2/v2.0/token", "authorization_endpoint": "` + base + `/authorize", "issuer": "` + base + `/v2.0"}`)(request{Request: r})
	}
	if d.logins.Add(1); d.busy.Load() {
		return status(429, "too_many_requests", "Retry-After", "300")(request{Request: r})
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, err
	}
	said := form.Get("client_secret") + form.Get("client_assertion")
	if said != *d.secret.Load() || form.Get("client_id") != "isthmus" {
		response, err := status(401, "invalid_client")(request{Request: r})
		return response, err
	}
	return body(`{"token_type": "Bearer", "expires_in": 600, "access_token": "of-` + said + `"}`)(request{Request: r})
}

// ofTheMachine gives a token to who asks on the machine itself.
func (d *directory) ofTheMachine(r *http.Request) (*http.Response, error) {
	d.logins.Add(1)
	q := r.URL.Query()
	if r.URL.Path != "/metadata/identity/oauth2/token" || r.Header.Get("Metadata") != "true" ||
		q.Get("resource") != "https://management.core.windows.net/" || q.Get("client_id") != *d.secret.Load() {
		return status(400, "invalid_request")(request{Request: r})
	}
	return body(`{"token_type": "Bearer", "expires_in": "600", "resource": "https://management.core.windows.net/", "access_token": "of-` +
		q.Get("client_id") + `"}`)(request{Request: r})
}

// mirrorWith runs a source with some credentials in the bubble of a test until stop.
func mirrorWith(t *testing.T, d *directory, c azure.Credentials, services ...machines.Service) *mirrored {
	t.Helper()
	settings, _ := azure.Kind().New().(*azure.Config)
	settings.Services, settings.Credentials = services, c
	into := store.NewMemory(store.Config{})
	m := &mirrored{T: t, store: into, supervisor: supervise.New("azure", azure.New(*settings, source.Env{}, azure.Access{Transport: d}), into,
		supervise.Config{Kind: "azure", MaxBackoff: time.Minute})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.supervisor.Run(ctx) }()
	m.stop = func() { cancel(); <-done }
	return m
}

// A service account shows its token, which is replaced from time to time, and gets one of
// Azure's for it.
func TestWorkloadIdentityGetsTokens(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, services := two()
	d := &directory{azureOf: a}
	d.secret.Store(new("one"))
	write("one")
	synctest.Test(t, func(t *testing.T) {
		m := mirrorWith(t, d, azure.Credentials{WorkloadIdentity: &azure.WorkloadIdentity{TenantID: "tenant", ClientID: "isthmus", TokenFile: file}}, services...)
		defer func() { m.stop() }()
		m.pass(time.Second)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		write("two")
		d.secret.Store(new("two"))
		a.change(func() { a.sets["web"] = set{members: members("10.0.0.2", "10.0.0.3")} })
		m.pass(30 * time.Minute)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.2", "10.0.0.3")

		d.secret.Store(new("three")) // which nobody has
		m.pass(30 * time.Minute)
		m.mustBe(source.StateStale, "WorkloadIdentityCredential", "invalid_client")
		m.mustHave("web.example", "10.0.0.2", "10.0.0.3")
	})
}

// A machine gets tokens for the identity that it is asked for, of what runs on it.
func TestManagedIdentityGetsTokens(t *testing.T) {
	t.Parallel()
	a, services := two()
	d := &directory{azureOf: a}
	d.secret.Store(new("of-a-user"))
	synctest.Test(t, func(t *testing.T) {
		m := mirrorWith(t, d, azure.Credentials{ManagedIdentity: &azure.ManagedIdentity{ClientID: "of-a-user"}}, services...)
		defer func() { m.stop() }()
		m.pass(time.Second)
		m.mustBe(source.StateLive)
		m.pass(30 * time.Minute)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		if n := d.logins.Load(); n < 2 || n > 15 {
			t.Errorf("%d logins in half an hour", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := mirrorWith(t, d, azure.Credentials{ManagedIdentity: &azure.ManagedIdentity{ClientID: "not-assigned"}}, services...)
		defer func() { m.stop() }()
		m.pass(3 * time.Minute)
		m.mustBe(source.StateListing, "credentials", "isn't assigned")
	})
}

// A secret that changes is used, without a restart and however the file is replaced. One
// that cannot be read leaves the one before in use.
func TestClientSecretChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	write := func(secret string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.WriteFile(next, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	a, services := two()
	d := &directory{azureOf: a}
	takes := func(secret string) { d.secret.Store(&secret) }
	takes("one")
	synctest.Test(t, func(t *testing.T) {
		m := mirrorWith(t, d, azure.Credentials{ClientSecret: &azure.ClientSecret{TenantID: "tenant", ClientID: "isthmus", SecretFile: file}}, services...)
		defer func() { m.stop() }()

		m.pass(time.Second)
		m.mustBe(source.StateListing, "secretFile")
		write("wrong")
		m.pass(3 * time.Minute)
		m.mustBe(source.StateListing, "credentials: ClientSecretCredential", "invalid_client")
		if strings.Contains(m.supervisor.Status().Reason, "\n") {
			t.Errorf("the reason has several lines\n%s", m.describe())
		}
		if strings.Contains(m.describe(), "wrong") {
			t.Error("the secret is shown")
		}
		write("one")
		d.busy.Store(true)
		m.pass(time.Minute)
		m.mustBe(source.StateListing, "429", "next attempt at")
		before := d.logins.Load()
		d.busy.Store(false)
		m.pass(3 * time.Minute)
		if n := d.logins.Load() - before; n != 0 {
			t.Errorf("%d logins during the pause", n)
		}
		m.pass(2 * time.Minute)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")

		if err := os.Remove(file); err != nil { // it is replaced in two steps
			t.Fatal(err)
		}
		m.pass(30 * time.Minute)
		m.mustBe(source.StateLive)

		logins := d.logins.Load()
		write("two")
		takes("two")
		a.change(func() { a.sets["web"] = set{members: members("10.0.0.2", "10.0.0.3")} })
		m.pass(30 * time.Minute)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.2", "10.0.0.3")
		if n := d.logins.Load() - logins; n > 15 { // a token lasts ten minutes, and is renewed after five
			t.Errorf("%d logins in half an hour", n)
		}
	})
}
