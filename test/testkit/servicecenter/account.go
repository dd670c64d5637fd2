package servicecenter

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// attempts is how many wrong passwords are forgiven in a time; the next
	// one locks the account for the same time.
	attempts   = 2
	lockout    = 15 * time.Minute
	tokenLives = 12 * time.Hour // if the client does not say
	tokenLeast = 15 * time.Minute
	tokenMost  = 24 * time.Hour
)

// accounts are the accounts, and their logins.
type accounts struct {
	tokens   map[string]time.Time // until when they are good
	failures map[string][]time.Time
	locked   map[string]time.Time
	logins   int
}

func newAccounts() accounts {
	return accounts{map[string]time.Time{}, map[string][]time.Time{}, map[string]time.Time{}, 0}
}

type login struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Lifetime string `json:"tokenExpirationTime"`
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if len(s.config.Accounts) == 0 { // authorization is off
		http.NotFound(w, r)
		return
	}
	var l login
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &l)
	}
	if err != nil {
		write(w, nil, reject(Invalid, "%s", err))
		return
	}
	lifetime, err := l.lifetime()
	if err != nil || lifetime < tokenLeast || lifetime > tokenMost {
		write(w, nil, reject(Invalid, "field 'Account.TokenExpirationTime' invalid value '%s'", l.Lifetime))
		return
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	s.mu.Lock()
	token, rejection := s.accounts.grant(l, host, s.config.Accounts, time.Now(), lifetime)
	s.mu.Unlock()
	if rejection != nil {
		write(w, nil, rejection)
		return
	}
	write(w, map[string]string{"token": token}, nil)
}

func (l login) lifetime() (time.Duration, error) {
	if l.Lifetime == "" {
		return tokenLives, nil
	}
	return time.ParseDuration(l.Lifetime)
}

// grant is a token, or why there is none.
func (a *accounts) grant(l login, host string, known map[string]string, at time.Time, lifetime time.Duration) (string, *Error) {
	a.logins++
	who := l.Name + "::" + host
	if at.Before(a.locked[who]) {
		return "", &Error{AccountLocked, AccountLocked.message(), ""}
	}
	if password, ok := known[l.Name]; !ok || password != l.Password {
		a.fail(who, at)
		return "", &Error{WrongPassword, WrongPassword.message(), ""}
	}
	token := newInstanceID() + newInstanceID()
	a.tokens[token] = at.Add(lifetime)
	return token, nil
}

func (a *accounts) fail(who string, at time.Time) {
	var recent []time.Time
	for _, t := range a.failures[who] {
		if at.Sub(t) < lockout {
			recent = append(recent, t)
		}
	}
	a.failures[who] = append(recent, at)
	if len(recent) >= attempts {
		a.locked[who] = at.Add(lockout)
	}
}

// authorized lets a request pass that brings a good token, if one is needed.
func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rejection := s.identify(r.Header.Get("Authorization")); rejection != nil {
			write(w, nil, rejection)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) identify(authorization string) *Error {
	if len(s.config.Accounts) == 0 {
		return nil
	}
	if authorization == "" {
		return reject(NoAuthorization, "")
	}
	parts := strings.Split(authorization, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.accounts.tokens[parts[len(parts)-1]]
	switch {
	case len(parts) != 2 || !ok:
		return reject(Unauthorized, "invalid auth header")
	case !time.Now().Before(until):
		return reject(TokenExpired, "")
	}
	return nil
}

// Logins returns the number of attempts to log in, at any replica.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts.logins
}

// ExpireTokens ends all tokens there are.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token := range s.accounts.tokens {
		s.accounts.tokens[token] = time.Time{}
	}
}
