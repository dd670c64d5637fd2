package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// errNoAccess means that no request can be made, to any member.
var errNoAccess = errors.New("cannot log in")

// Access logs in, and keeps the token, and the pauses that members ask for. It outlives the
// runs of a source, so that restarts do not cause more logins and requests than the registry
// allows. It belongs to the goroutine that runs the source.
type Access struct {
	username, passwordFile string
	attempts               attempts
	current                string // the token; empty if there is none
	since                  time.Time
	rejection              error // of the last login, or of the last token
	pauses                 pauses
}

// tokenRest is how long a new token must be accepted before the next login.
const tokenRest = 10 * time.Second

// NewAccess returns the access of an account, or without a name the access of anyone.
func NewAccess(username, passwordFile string) *Access {
	return &Access{username: username, passwordFile: passwordFile, pauses: pauses{}}
}

func (a *Access) needed() bool { return a.username != "" }

// expired drops a token that the registry does not accept any more.
func (a *Access) expired(token string, why error) {
	if a.current == token {
		a.current, a.rejection = "", why
	}
}

// token returns the token for a request, after a login if there is none.
func (a *Access) token(ctx context.Context, t *transport) (string, error) {
	if !a.needed() || a.current != "" {
		return a.current, nil
	}
	if age := time.Since(a.since); age < tokenRest {
		return "", fmt.Errorf("%w: the registry rejects the token that it issued %s ago: %w; look at the account's roles",
			errNoAccess, age.Round(time.Second), a.rejection)
	}
	password, err := os.ReadFile(a.passwordFile)
	if err != nil {
		return "", fmt.Errorf("%w: passwordFile: %w", errNoAccess, err)
	}
	password = bytes.TrimRight(password, "\r\n")
	if wait := a.attempts.wait(password, time.Now()); wait > 0 {
		return "", fmt.Errorf("%w: the last login as %s was rejected or not answered (%w); so that the account is not locked, "+
			"the next one is made at %s, or when passwordFile changes",
			errNoAccess, a.username, a.rejection, time.Now().Add(wait).UTC().Format(time.RFC3339))
	}
	return a.login(ctx, t, password)
}

// login asks the member in use for a token.
func (a *Access) login(ctx context.Context, t *transport, password []byte) (string, error) {
	body, err := json.Marshal(map[string]string{"name": a.username, "password": string(password)})
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoAccess, err)
	}
	var answer struct {
		Token string `json:"token"`
	}
	a.attempts.begin(password, time.Now())
	err = t.send(ctx, request{
		method: http.MethodPost, path: []string{"token"}, body: body, secret: string(password),
		read: func(body []byte) error {
			if json.Unmarshal(body, &answer) != nil {
				return errors.New("the answer to the login is not a Service Center's")
			}
			return nil
		},
	}, "")
	a.rejection = err
	switch {
	case err != nil && unjudged(err):
		a.attempts.uncount()
		return "", fmt.Errorf("log in: %w", err)
	case err != nil:
		return "", fmt.Errorf("%w as %s: %w; correct username and passwordFile", errNoAccess, a.username, err)
	case answer.Token == "":
		return "", fmt.Errorf("%w as %s: the answer has no token", errNoAccess, a.username)
	}
	a.attempts.succeeded(password)
	a.current, a.since = answer.Token, time.Now()
	return a.current, nil
}

// unjudged reports whether a login failed in such a way that no member can have
// checked the password.
func unjudged(err error) bool {
	no, answered := errors.AsType[*rejected](err)
	if !answered {
		return unreached(err)
	}
	_, said := errors.AsType[*registryError](no.cause)
	return no.retry && (said || no.status == http.StatusServiceUnavailable || no.status == http.StatusTooManyRequests)
}
