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
	"github.com/isthmus-mesh/isthmus/store"
)

// directory is Azure with what gives out tokens, which last ten minutes. It takes one
// secret.
type directory struct {
	*azureOf
	secret atomic.Pointer[string]
	logins atomic.Int32
	busy   atomic.Bool // it wants a pause of five minutes
}

// Do implements [policy.Transporter].
func (d *directory) Do(r *http.Request) (*http.Response, error) {
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
	if form.Get("client_secret") != *d.secret.Load() {
		response, err := status(401, "invalid_client")(request{Request: r})
		return response, err
	}
	return body(`{"token_type": "Bearer", "expires_in": 600, "access_token": "of-` + form.Get("client_secret") + `"}`)(request{Request: r})
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
		settings, _ := azure.Kind().New().(*azure.Config)
		settings.Services = services
		settings.Credentials.ClientSecret = &azure.ClientSecret{TenantID: "tenant", ClientID: "isthmus", SecretFile: file}
		into := store.NewMemory(store.Config{})
		m := &mirrored{T: t, store: into, supervisor: source.NewSupervisor("azure", azure.New(*settings, source.Env{}, azure.Access{Transport: d}), into,
			source.Config{Kind: "azure", MaxBackoff: time.Minute})}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = m.supervisor.Run(ctx) }()
		defer func() { cancel(); <-done }()

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
		m.mustBe(source.StateListing, "429", "asked again at")
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
