package servicecenter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client speaks to the members of one registry. It keeps to the member that
// answered last, and goes on to the next when one cannot be reached, fails, or
// answers with what makes no sense. It belongs to one goroutine.
type client struct {
	config Config
	http   *http.Client
	access *access
	at     int // the address in use

	roll roll

	// kept is how long the registry was kept busy since this was last set to zero.
	kept time.Duration
}

// dialer opens connections; nil for the network's own.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func newClient(c Config, a *access, dial dialer) (*client, error) {
	tls, err := c.TLS.Load()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // as net/http documents
	transport.TLSClientConfig, transport.MaxIdleConnsPerHost = tls, 2
	transport.DisableCompression = true // but what the client asks for itself
	if dial != nil {
		transport.Proxy, transport.DialContext = nil, dial
	}
	transport.Protocols = new(http.Protocols) // HTTP/1 alone, for websockets begin there
	transport.Protocols.SetHTTP1(true)
	return &client{config: c, http: &http.Client{Transport: transport, CheckRedirect: stay}, access: a}, nil
}

// stay follows no redirection: it would take a token to who knows where.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c *client) close() { c.http.CloseIdleConnections() }

// request is what to ask, of whichever member.
type request struct {
	what   string // for people: "list the services"
	method string
	path   []string // below /v4, not yet escaped
	query  string
	body   []byte
	// consumer asks in the name of a service, which writes into the registry.
	consumer string
	// secret is in the body. What is answered is a secret, too, and quoted nowhere
	// unless the registry itself says why it rejects.
	secret string
	// read takes the answer; an error has another member asked.
	read func(body []byte) error
}

// do asks one member after the other until one answers. What the registry
// rejects it rejects everywhere: such an error is a [*rejected].
func (c *client) do(ctx context.Context, r request) error {
	var problems []string
	for range c.config.Addresses {
		err := c.ask(ctx, r)
		no, isNo := errors.AsType[*rejected](err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isNo && !no.retry, errors.Is(err, errNoAccess):
			return fmt.Errorf("%s: %w", r.what, err)
		}
		problems = append(problems, c.address()+" "+err.Error())
		c.at = (c.at + 1) % len(c.config.Addresses)
	}
	return fmt.Errorf("%s: %s", r.what, strings.Join(problems, "; "))
}

func (c *client) address() string { return strings.TrimRight(c.config.Addresses[c.at], "/") }

// rejected is an answer other than success.
type rejected struct {
	status int
	cause  error
	retry  bool // another member may answer better
}

// Error implements error.
func (e *rejected) Error() string { return fmt.Sprintf("answers %d: %v", e.status, e.cause) }

// Unwrap gives the registry's own error, if it said one.
func (e *rejected) Unwrap() error { return e.cause }

// ask asks the member in use, once more with a new token if it does not take the old.
func (c *client) ask(ctx context.Context, r request) error {
	token, err := c.access.token(ctx, c)
	if err != nil {
		return err
	}
	err = c.send(ctx, r, token)
	if no, ok := errors.AsType[*rejected](err); !ok || no.status != http.StatusUnauthorized || !c.access.needed() {
		return err
	}
	c.access.expired(token)
	if token, err = c.access.token(ctx, c); err != nil {
		return err
	}
	return c.send(ctx, r, token)
}

// send asks the member in use, once.
func (c *client) send(ctx context.Context, r request, token string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, fmt.Errorf("does not answer within %s: check that it is up, or set a longer timeout", c.config.Timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r), bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("cannot be asked: %w", err)
	}
	c.head(req.Header, r, token)
	began := time.Now()
	answer, err := c.http.Do(req)
	if err != nil {
		c.kept += time.Since(began)
		return transportError(ctx, err)
	}
	defer answer.Body.Close()
	body, err := readBody(answer, largestAnswer)
	c.kept += time.Since(began)
	switch tooMuch, ok := errors.AsType[*excessive](err); {
	case ok:
		return fmt.Errorf("answers %s %s with too much: %w", r.method, c.url(r), tooMuch)
	case err != nil:
		return fmt.Errorf("cuts its answer short: %w", transportError(ctx, err))
	}
	if answer.StatusCode != http.StatusOK {
		return rejectedWith(answer.StatusCode, r.quotable(body, token))
	}
	if r.read == nil {
		return nil
	}
	if err := r.read(body); err != nil {
		return fmt.Errorf("answers %s %s, but not as a Service Center does: %w", r.method, c.url(r), err)
	}
	return nil
}

// quotable is what errors may quote of an answer: some proxies show in theirs
// what they were asked, with the token or the password in it.
func (r request) quotable(body []byte, token string) []byte {
	for _, secret := range []string{token, r.secret} {
		if secret != "" {
			body = bytes.ReplaceAll(body, []byte(secret), []byte("***"))
		}
	}
	var said registryError
	if r.secret != "" && (unmarshal(body, &said) != nil || said.Code == "") {
		return nil
	}
	return body
}

func (c *client) url(r request) string {
	var b strings.Builder
	b.WriteString(c.address() + "/v4")
	for _, part := range r.path {
		b.WriteString("/" + url.PathEscape(part))
	}
	if r.query != "" {
		b.WriteString("?" + r.query)
	}
	return b.String()
}

func (c *client) head(h http.Header, r request, token string) {
	h.Set("X-Domain-Name", c.config.Domain)
	askCompressed(h)
	if r.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if r.consumer != "" {
		h.Set("X-ConsumerId", r.consumer)
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
}

// transportError is an error of the network without what is said elsewhere.
func transportError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) && cause != nil {
		return cause
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("cannot be reached: %w", u.Err)
	}
	return err
}

// rejectedWith reads an answer other than success. Another member may do better
// unless it is the registry that says so, and says that the request is at fault.
func rejectedWith(status int, body []byte) error {
	var said registryError
	if unmarshal(body, &said) != nil || said.Code == "" {
		return &rejected{status, fmt.Errorf("%q", clip(strings.TrimSpace(string(body)))), status != http.StatusRequestEntityTooLarge}
	}
	return &rejected{status, &said, status >= http.StatusInternalServerError || status == http.StatusTooManyRequests}
}

// list asks for all services of the project. A member that has none says
// nothing at all, so it has to show that it is a Service Center.
func (c *client) list(ctx context.Context) (answer listAnswer, err error) {
	err = c.do(ctx, request{
		what: "list the services", method: http.MethodGet, path: []string{c.config.Project, "registry", "microservices"},
		read: func(body []byte) (err error) {
			answer, err = c.roll.read(body)
			if err != nil || !answer.bare {
				return err
			}
			if err := c.introduce(ctx); err != nil {
				// Whatever it is, another member may answer better, so it is no rejection.
				return fmt.Errorf("%w; a Service Center without services says so, but this one does not show that it is one: %s",
					lacks("services", body), err.Error())
			}
			return nil
		},
	})
	return answer, err
}

// introduce asks the member in use for the members of its registry. They are
// registered themselves, so a Service Center names one at least, however empty
// it is, and whatever answers in its place hardly does.
func (c *client) introduce(ctx context.Context) error {
	return c.ask(ctx, request{
		method: http.MethodGet, path: []string{c.config.Project, "registry", "health"},
		read: func(body []byte) error {
			var answer struct {
				Instances []Instance `json:"instances"`
			}
			if err := unmarshal(body, &answer); err != nil {
				return err
			}
			if len(answer.Instances) == 0 || answer.Instances[0].ServiceID == "" {
				return errors.New("the answer names no member of the registry; if it is one, switch registry.selfRegister on there")
			}
			return nil
		},
	})
}

// find asks for the keys of a chunk, in the name of nobody unless of a consumer.
func (c *client) find(ctx context.Context, asked chunk, consumer string) (answers []found, err error) {
	err = c.do(ctx, request{
		what: "find the instances", method: http.MethodPost, path: []string{c.config.Project, "registry", "instances", "action"},
		query: "type=query", body: asked.body, consumer: consumer,
		read: func(body []byte) (err error) { answers, err = decodeFound(body, len(asked.asks)); return err },
	})
	return answers, err
}
