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

// client speaks to the members of one registry. It keeps to the member that answered
// last. It tries the next one if a member is unreachable, fails, or answers nonsense.
// It belongs to one goroutine.
type client struct {
	config Config
	http   *http.Client
	access *access
	at     int // the address in use

	roll roll

	// kept is the time that the registry was busy, since the last reset to zero.
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
	transport.DisableCompression = true // the client itself requests compression
	if dial != nil {
		transport.Proxy, transport.DialContext = nil, dial
	}
	transport.Protocols = new(http.Protocols) // HTTP/1 alone, for websockets begin there
	transport.Protocols.SetHTTP1(true)
	return &client{config: c, http: &http.Client{Transport: transport, CheckRedirect: stay}, access: a}, nil
}

// stay follows no redirection: the token could go to an unknown server.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (c *client) close() { c.http.CloseIdleConnections() }

// request is a request to any member.
type request struct {
	what   string // for people: "list the services"
	method string
	path   []string // below /v4, not yet escaped
	query  string
	body   []byte
	// consumer is the service in the name of which to ask; the registry records that.
	consumer string
	// secret is a part of the body. The answer is secret, too, and errors quote it
	// only if it is the registry's own error.
	secret string
	// read takes the answer; after an error, another member is asked.
	read func(body []byte) error
}

// do asks one member after the other until one answers. A request that the registry
// rejects is rejected by every member: the error is a [*rejected].
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
	retry  bool // another member may succeed
}

// Error implements error.
func (e *rejected) Error() string { return fmt.Sprintf("answers %d: %v", e.status, e.cause) }

// Unwrap returns the registry's own error, if there is one.
func (e *rejected) Unwrap() error { return e.cause }

// ask asks the member in use, and once more with a new token if the old one is rejected.
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

// quotable returns the part of an answer that errors may quote: some proxies repeat
// the request in their answer, with the token or the password in it.
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

// transportError returns a network error without redundant parts.
func transportError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) && cause != nil {
		return cause
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("cannot be reached: %w", u.Err)
	}
	return err
}

// rejectedWith reads an answer other than success. Another member may succeed, unless
// the registry itself answers that the request is at fault.
func rejectedWith(status int, body []byte) error {
	var said registryError
	if unmarshal(body, &said) != nil || said.Code == "" {
		return &rejected{status, fmt.Errorf("%q", clip(strings.TrimSpace(string(body)))), status != http.StatusRequestEntityTooLarge}
	}
	return &rejected{status, &said, status >= http.StatusInternalServerError || status == http.StatusTooManyRequests}
}

// list asks for all services of the project. A member without services sends an empty
// object, so it has to show that it is a Service Center.
func (c *client) list(ctx context.Context) (answer listAnswer, err error) {
	err = c.do(ctx, request{
		what: "list the services", method: http.MethodGet, path: []string{c.config.Project, "registry", "microservices"},
		read: func(body []byte) (err error) {
			answer, err = c.roll.read(body)
			if err != nil || !answer.bare {
				return err
			}
			if err := c.introduce(ctx); err != nil {
				// Whatever the error is, another member may succeed, so it is no rejection.
				return fmt.Errorf("%w; a Service Center without services says so, but this one does not show that it is one: %s",
					lacks("services", body), err.Error())
			}
			return nil
		},
	})
	return answer, err
}

// introduce asks the member in use for the members of its registry. Members register
// themselves, so even an empty Service Center names at least one. Any other server
// hardly does.
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

// find asks for the keys of a chunk, in the name of a consumer if one is given.
func (c *client) find(ctx context.Context, asked chunk, consumer string) (answers []found, err error) {
	err = c.do(ctx, request{
		what: "find the instances", method: http.MethodPost, path: []string{c.config.Project, "registry", "instances", "action"},
		query: "type=query", body: asked.body, consumer: consumer,
		read: func(body []byte) (err error) { answers, err = decodeFound(body, len(asked.asks)); return err },
	})
	return answers, err
}
