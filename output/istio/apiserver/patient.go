// Package apiserver repeats reads of an API server that is away, and describes its errors for
// an operator. It knows no objects. A transport may be used by any goroutine.
package apiserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	pausing "github.com/isthmus-mesh/isthmus/internal/wait"
)

// Patient retries by itself while the API server is away, so that a request is answered
// within seconds of its return. The client library's own pauses, of the informer and of the
// election, grow to half a minute, and add up. It retries reads only; the reconciler
// repeats writes.
type Patient struct {
	Next http.RoundTripper
	// Limit bounds one attempt; zero means no bound, because a watch lasts.
	Limit time.Duration
	// Failed and answered are called after each attempt.
	Failed   func(error)
	Answered func()
}

// pauses returns the wait between two attempts.
func pauses() pausing.Backoff {
	return pausing.Backoff{Min: 250 * time.Millisecond, Max: 2 * time.Second}
}

// RoundTrip implements [http.RoundTripper]. It waits for: the end of the request, the time
// of the next attempt.
func (p *Patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return p.Next.RoundTrip(r)
	}
	for failures := 1; ; failures++ {
		response, err := p.try(r)
		after, again := p.again(r, response, err)
		if !again {
			return response, err
		}
		after = max(after, pauses().After(failures, rand.Float64())) //nolint:gosec // only spreads the tries
		if !pausing.Sleep(r.Context(), after) {
			return nil, r.Context().Err()
		}
	}
}

// try makes one attempt, within its limit.
func (p *Patient) try(r *http.Request) (*http.Response, error) {
	if p.Limit == 0 {
		return p.Next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.Limit)
	response, err := p.Next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &limited{response.Body, cancel}
	return response, nil
}

// limited is a body whose context is cancelled when it is closed.
type limited struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements [io.Closer].
func (l *limited) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}

// again reports whether another attempt is useful, and the API server's requested minimum
// wait. The answer of a repeated attempt is closed.
func (p *Patient) again(r *http.Request, response *http.Response, err error) (after time.Duration, again bool) {
	switch {
	case r.Context().Err() != nil:
		return 0, false
	case err != nil:
		p.Failed(&url.Error{Op: r.Method, URL: r.URL.Path, Err: err})
		return 0, true
	case response.StatusCode == http.StatusTooManyRequests, response.StatusCode >= http.StatusInternalServerError:
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		_ = response.Body.Close()
		p.Failed(fmt.Errorf("the API server responds %s: %s", response.Status, text))
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return time.Duration(max(seconds, 0)) * time.Second, true
	case response.StatusCode < http.StatusBadRequest:
		p.Answered()
	}
	return 0, false
}

// Klog directs the client library's log to ours.
func Klog(log *slog.Logger) klog.Logger { return logr.FromSlogHandler(log.Handler()) }
