package servicecenter_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

const listing = "/v4/default/registry/microservices"

func TestATokenIsNeededWhileItIsGood(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{Accounts: map[string]string{"root": "secret"}}, func(t *testing.T, p *peer) {
		mustBeRejected(t, p.ask(t, http.MethodGet, listing, ""), "401204")
		if a := p.ask(t, http.MethodGet, "/v4/default/registry/health", ""); a.status != http.StatusOK {
			t.Errorf("health needs a token: %d", a.status)
		}
		p.header.Set("Authorization", "Bearer nonsense")
		mustBeRejected(t, p.ask(t, http.MethodGet, listing, ""), "401201")
		mustBeRejected(t, p.login(t, "secret", "14m"), "400001")
		p.login(t, "secret", "20m")
		if a := p.ask(t, http.MethodGet, listing, ""); a.status != http.StatusOK {
			t.Errorf("with a token: %d %s", a.status, a.text)
		}
		time.Sleep(20 * time.Minute)
		mustBeRejected(t, p.ask(t, http.MethodGet, listing, ""), "401205")
		p.login(t, "secret", "")
		p.ExpireTokens()
		mustBeRejected(t, p.ask(t, http.MethodGet, listing, ""), "401205")
		if n := p.Logins(); n != 2 {
			t.Errorf("%d logins were counted, want 2", n)
		}
	})
}

func TestWrongPasswordsLockAnAccount(t *testing.T) {
	t.Parallel()
	inBubble(t, servicecenter.Config{Accounts: map[string]string{"root": "secret"}}, func(t *testing.T, p *peer) {
		for range 3 {
			mustBeRejected(t, p.login(t, "wrong", ""), "401202")
		}
		mustBeRejected(t, p.login(t, "secret", ""), "403201")
		time.Sleep(15*time.Minute - time.Second)
		mustBeRejected(t, p.login(t, "secret", ""), "403201")
		time.Sleep(time.Second)
		if a := p.login(t, "secret", ""); a.status != http.StatusOK {
			t.Errorf("it is still locked: %d %s", a.status, a.text)
		}
	})
}

// login asks for a token, and uses it if there is one.
func (p *peer) login(t *testing.T, password, lifetime string) answer {
	t.Helper()
	a := p.ask(t, http.MethodPost, "/v4/token", `{"name":"root","password":"`+password+`","tokenExpirationTime":"`+lifetime+`"}`)
	var body struct{ Token string }
	if a.status == http.StatusOK && json.Unmarshal([]byte(a.text), &body) == nil {
		p.header.Set("Authorization", "Bearer "+body.Token)
	}
	return a
}

func mustBeRejected(t *testing.T, a answer, code string) {
	t.Helper()
	if a.code != code {
		t.Errorf("answered %d %s, want %s", a.status, a.text, code)
	}
}
