package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/certs"
)

// Settings select the registry, and how to reach it.
type Settings struct {
	// Addresses are the members of one Service Center, tried in turn.
	Addresses       []string
	Domain, Project string
	// Timeout bounds a request to one address.
	Timeout time.Duration
	TLS     certs.Client
}

// Dialer opens connections; nil for the network's own.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// transport sends requests to the member in use.
type transport struct {
	settings Settings
	http     *http.Client
	at       int           // the address in use
	busy     time.Duration // how long the registry took to answer, since the last reset
	pauses   pauses
}

func newTransport(s Settings, p pauses, dial Dialer) (*transport, error) {
	config, err := s.TLS.Load()
	if err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // as net/http documents
	t.TLSClientConfig, t.MaxIdleConnsPerHost = config, 2
	t.DisableCompression = true // the requests themselves ask for compression
	if dial != nil {
		t.Proxy, t.DialContext = nil, dial
	}
	t.Protocols = new(http.Protocols) // HTTP/1 alone, for websockets begin there
	t.Protocols.SetHTTP1(true)
	return &transport{settings: s, http: &http.Client{Transport: t, CheckRedirect: stay}, pauses: p}, nil
}

// stay follows no redirection: the token could go to an unknown server.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (t *transport) address() string {
	return strings.TrimRight(t.settings.Addresses[t.at], "/")
}

// next changes to the next member.
func (t *transport) next() { t.at = (t.at + 1) % len(t.settings.Addresses) }

// send asks the member in use, once.
func (t *transport) send(ctx context.Context, r request, token string) error {
	if err := t.pauses.of(t.address(), time.Now()); err != nil {
		return err
	}
	within := t.settings.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("does not answer within %s: check that it is up, or set a longer timeout", within))
	defer cancel()
	at := r.url(t.address())
	req, err := http.NewRequestWithContext(ctx, r.method, at, bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("cannot be asked: %w", err)
	}
	req.Header = r.header(t.settings.Domain, token)
	began := time.Now()
	answer, err := t.http.Do(req)
	if err != nil {
		t.busy += time.Since(began)
		return transportError(ctx, err)
	}
	defer answer.Body.Close()
	body, err := readBody(answer, largestAnswer)
	t.busy += time.Since(began)
	switch tooMuch, ok := errors.AsType[*excessive](err); {
	case ok:
		return fmt.Errorf("answers %s %s with too much: %w", r.method, at, tooMuch)
	case err != nil:
		return fmt.Errorf("cuts its answer short: %w", transportError(ctx, err))
	}
	if answer.StatusCode != http.StatusOK {
		err := rejectedWith(answer.StatusCode, r.quotable(body, token))
		t.pauses.note(t.address(), answer, err)
		return err
	}
	if r.read == nil {
		return nil
	}
	if err := r.read(body); err != nil {
		return fmt.Errorf("answers %s %s, but not as a Service Center does: %w", r.method, at, err)
	}
	return nil
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

// unreached reports whether a request cannot have reached a server: there was no
// connection to send it on.
func unreached(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	return badCertificate
}
