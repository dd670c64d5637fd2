package servicecenter_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// guarded is a registry that wants a token.
func guarded() standin.Config {
	c := prompt
	c.Accounts = map[string]string{"mesh": "hunter2"}
	return c
}

// account is a configuration with a password in a file, which is returned, too.
func (r *rig) account(password string) (c servicecenter.Config, file string) {
	r.Helper()
	c = r.config()
	file = filepath.Join(r.TempDir(), "password")
	r.write(file, password)
	c.Username, c.PasswordFile, c.Insecure = "mesh", file, true // its names are those of a network in memory
	return c, file
}

func (r *rig) write(file, text string) {
	r.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// Q: there was one address, and no token. Here the members are tried in turn.
func TestDefectQ_AnyMemberWillDo(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		second := r.replica()
		id := r.many("cart", 0, 1)
		c := r.config()
		c.Addresses = append([]string{"http://nowhere:1"}, c.Addresses...)
		m := r.mirror(c)
		m.is(source.StateLive, "")
		r.Inject(standin.Any, standin.FailWith(standin.BackendDown), 0)
		r.instance(id, "new", "10.0.0.2:8080")
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/new = 10.0.0.2")
		m.is(source.StateLive, "")
		if second.Requests(standin.ListServices) == 0 {
			t.Error("the second member was not asked")
		}
		second.Close()
		r.pass(time.Minute)
		m.is(source.StateStale, "500011")
		r.Repair()
		r.pass(10 * time.Second)
		m.is(source.StateLive, "")
	})
}

// Q: tokens are taken, and renewed when they end.
func TestDefectQ_TokensAreRenewed(t *testing.T) {
	bubble(t, guarded(), func(r *rig) {
		id := r.many("cart", 0, 1)
		c, _ := r.account("hunter2\n")
		m := r.mirror(c)
		m.is(source.StateLive, "")
		r.pass(time.Minute)
		if got := r.Logins(); got != 1 {
			t.Errorf("%d logins", got)
		}
		r.ExpireTokens()
		r.instance(id, "new", "10.0.0.2:8080")
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/new = 10.0.0.2")
		if got := r.Logins(); got != 2 {
			t.Errorf("%d logins", got)
		}
		m.is(source.StateLive, "")
	})
}

// A wrong password does not lock the account: not in a day of trying, and not
// while somebody corrects it. The right one is tried at once.
func TestWrongPasswordNeverLocks(t *testing.T) {
	bubble(t, guarded(), func(r *rig) {
		r.replica()
		r.many("cart", 0, 1)
		c, file := r.account("hunter1")
		m := r.mirror(c)
		m.is(source.StateListing, "401202")
		if got := r.Logins(); got != 1 {
			t.Errorf("%d logins at once", got)
		}
		r.pass(5 * time.Minute)
		m.is(source.StateListing, "the next one is made at ")
		if got := r.Logins(); got != 1 {
			t.Errorf("%d logins in five minutes", got)
		}
		r.pass(3 * time.Hour)
		if got := r.Logins(); got > 10 {
			t.Errorf("%d logins in three hours", got)
		}
		r.write(file, "hunter2")
		r.pass(10 * time.Second)
		m.is(source.StateLive, "")
		if strings.Contains(r.log.String(), "hunter") {
			t.Error("a password is in the log")
		}
	})
}

// That the registry cannot be reached, or has trouble of its own, is no wrong
// password: the next login comes as soon as the next try.
func TestOutageIsNoWrongPassword(t *testing.T) {
	bubble(t, guarded(), func(r *rig) {
		r.many("cart", 0, 1)
		c, _ := r.account("hunter2")
		c.Addresses = append([]string{"http://nowhere:1"}, c.Addresses...)
		r.Inject(standin.Token, standin.FailWith(standin.BackendDown), 0)
		m := r.mirror(c)
		r.pass(time.Minute)
		m.is(source.StateListing, "500011")
		r.Repair()
		r.pass(10 * time.Second)
		m.is(source.StateLive, "")
	})
}

// Not even a login that is never answered is tried often, for it may have been
// rejected; one more is made if the password was right before.
func TestUnansweredLoginsNeverLock(t *testing.T) {
	bubble(t, guarded(), func(r *rig) {
		r.many("cart", 0, 1)
		c, _ := r.account("hunter2")
		m := r.mirror(c)
		r.pass(time.Minute)
		r.ExpireTokens()
		r.Inject(standin.Token, standin.Hang(), 0)
		tried := r.Requests(standin.Token)
		r.pass(15 * time.Minute)
		if got := r.Requests(standin.Token) - tried; got != 2 {
			t.Errorf("%d logins in a quarter of an hour", got)
		}
		m.is(source.StateStale, "the next one is made at ")
		r.Repair()
		r.pass(10 * time.Minute)
		m.is(source.StateLive, "")
	})
}

// Q: other projects and domains than the default ones, and filters.
func TestDefectQ_ProjectsDomainsAndFilters(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("elsewhere", 0, 1)
		tenant := r.Project("acme", "blue")
		for _, environment := range []string{"", "production", "testing"} {
			for _, app := range []string{"a", "b", "c"} {
				id := tenant.Register(standin.Service{Environment: environment, App: app, Name: "cart"})
				tenant.RegisterInstance(id, standin.Instance{ID: environment + app, Endpoints: []string{"rest://10.0.0.1:80"}})
			}
		}
		c := r.config()
		c.Domain, c.Project, c.Environments, c.Apps = "acme", "blue", []string{"production", ""}, []string{"b", "a"}
		m := r.mirror(c)
		m.wants("cart at blue/production/b/cart: http-80", "cart/productionb = 10.0.0.1")
		if got := len(m.Status().Rejected); got != 3 {
			t.Errorf("%d rejected: %v", got, m.Status().Rejected)
		}
	})
}

// Q: TLS on both sides, also for the websocket.
func TestDefectQ_TLS(t *testing.T) {
	t.Parallel()
	ours, unknown := authority.New(t, "ca"), authority.New(t, "other")
	pair := ours.Issue("registry")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ours.PEM)
	plain, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry := standin.New(prompt)
	registry.Serve(tls.NewListener(plain, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		NextProtos: []string{"h2", "http/1.1"},
	}))
	defer registry.Close()
	registry.RegisterInstance(registry.Register(standin.Service{App: "shop", Name: "cart"}), standin.Instance{Endpoints: []string{"rest://10.0.0.1:80"}})

	dir, shown := t.TempDir(), ours.Issue("isthmus")
	for name, text := range map[string][]byte{"ca.crt": ours.PEM, "unknown.crt": unknown.PEM, "tls.crt": shown.Cert, "tls.key": shown.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := servicecenter.Config{Addresses: []string{"https://" + registry.Address()}, Watch: true}
	c.TLS = certs.Client{CAFile: "unknown.crt", ServerName: "localhost", CertFile: "tls.crt", KeyFile: "tls.key"}
	c = servicecenter.WithDefaults(c)
	c.Resolve(dir)
	if err := servicecenter.New(c, servicecenter.Options{}).Run(t.Context(), &onceSink{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority is trusted: %v", err)
	}
	c.TLS.CAFile = filepath.Join(dir, "ca.crt")
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	sink := &watchedSink{registry: registry}
	if err := servicecenter.New(c, servicecenter.Options{Instance: "one", Name: "sc"}).Run(ctx, sink); !errors.Is(err, errEnough) {
		t.Errorf("nothing is watched: %v", err)
	}
}

// watchedSink ends the source when something is listed while a watch is open.
type watchedSink struct {
	registry *standin.Server
}

func (s *watchedSink) Replace(context.Context, model.Listing) error {
	if s.registry.Watchers() > 0 {
		return errEnough
	}
	return nil
}
func (s *watchedSink) Change(context.Context, model.Change) error { return errEnough }

// Relist asks again and again.
func (s *watchedSink) Relist() <-chan time.Time { return time.After(50 * time.Millisecond) }

// echo is an error page that shows what was asked.
func echo(_ *standin.Server, w http.ResponseWriter, r *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, "who asks: "+r.Header.Get("Authorization"))
}

// Neither the password nor a token is shown, whatever is answered to a login and
// whatever an error page shows of what was asked.
func TestSecretsAreNeverShown(t *testing.T) {
	const token = "eyJhbGciOiJSUzUxMiJ9.secret"
	for name, answer := range map[string]struct {
		route standin.Route
		fault standin.Fault
		shows string
	}{
		"created":       {standin.Token, standin.Answer(201, "application/json", `{"token":"`+token+`"}`), "answers 201"},
		"bare":          {standin.Token, standin.Answer(200, "text/plain", token), "not a Service Center's"},
		"list":          {standin.Token, standin.Answer(200, "application/json", `["`+token+`"]`), "not a Service Center's"},
		"echoed":        {standin.Token, standin.Answer(502, "text/html", `<pre>{"name":"mesh","password":"hunter2"}</pre>`), "answers 502"},
		"said":          {standin.Token, standin.Answer(400, "application/json", `{"errorCode":"400001","errorMessage":"no good: hunter2"}`), "no good: ***"},
		"header echoed": {standin.ListServices, echo, "who asks: Bearer ***"},
		"long":          {standin.ListServices, standin.Answer(500, "application/json", `{"errorCode":"500003","errorMessage":"`+strings.Repeat("é", 1<<20)+`"}`), "500003"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, guarded(), func(r *rig) {
				c, _ := r.account("hunter2")
				r.Inject(answer.route, answer.fault, 0)
				m := r.mirror(c)
				r.pass(time.Second)
				shown := fmt.Sprint(m.Status()) + r.log.String()
				if !strings.Contains(shown, answer.shows) {
					t.Errorf("%q is not shown: %s", answer.shows, shown)
				}
				for _, secret := range []string{"hunter2", token} {
					if strings.Contains(shown, secret) {
						t.Errorf("%q is shown: %s", secret, shown)
					}
				}
				if len(m.Status().Reason) > 1000 {
					t.Errorf("a reason of %d bytes", len(m.Status().Reason))
				}
			})
		})
	}
}
