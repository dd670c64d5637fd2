package identity

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

const (
	keysEvery = 5 * time.Minute  // between two refreshes
	keysPause = 10 * time.Second // at least, between two requests
	keysWait  = 5 * time.Second  // at most, of a client for a request
	keysTime  = 10 * time.Second // at most, of a request
)

// fetcher gets the text of a key set from elsewhere.
type fetcher interface {
	fetch(ctx context.Context) ([]byte, error)
}

// remoteKeys are the keys at a URL. follow alone requests them, one request at a time.
// Clients with an unknown key wait for the request in flight, or ask for one if the last
// began keysPause ago.
type remoteKeys struct {
	from  fetcher
	log   *slog.Logger
	asked chan struct{} // has one element while a client asks for a request

	mu    sync.Mutex
	set   keySet
	valid time.Time // when the set was read; zero: never
	fault fault
	began time.Time     // the last request; zero: none yet
	ended chan struct{} // closed at the end of the request that is asked for or in flight; nil: neither
}

func newRemoteKeys(from fetcher, log *slog.Logger) *remoteKeys {
	return &remoteKeys{from: from, log: log, asked: make(chan struct{}, 1), ended: make(chan struct{})}
}

var errUnread = errors.New("the keys of the issuer have not been read yet; try again")

func (r *remoteKeys) find(ctx context.Context, id string) (key, error) {
	one, ended, err := r.known(id)
	if err == nil || ended == nil {
		return one, err
	}
	timer := time.NewTimer(keysWait)
	defer timer.Stop()
	// Cases: the request ended; it takes too long; the client has left.
	select {
	case <-ended:
	case <-timer.C:
	case <-ctx.Done():
		return key{}, context.Cause(ctx)
	}
	one, _, err = r.known(id)
	return one, err
}

// known returns the key of an id from the last set. If another request may help, ended is
// closed at its end.
func (r *remoteKeys) known(id string) (one key, ended <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, err = r.set.lookup(id, r.valid, r.fault); err == nil {
		return one, nil, nil
	}
	if r.ended == nil && time.Since(r.began) >= keysPause {
		r.ended = make(chan struct{})
		r.asked <- struct{}{} // it has room: no stream asked since the last request
	}
	return one, r.ended, err
}

// follow requests the keys every keysEvery, sooner after a failure, and when a client asks.
func (r *remoteKeys) follow(ctx context.Context) {
	backoff, failures := wait.Backoff{Min: keysPause, Max: keysEvery}, 0
	for ctx.Err() == nil {
		failures++
		if r.refresh(ctx) {
			failures = 0
		}
		pause := keysEvery
		if failures > 0 {
			pause = backoff.After(failures, rand.Float64()) //nolint:gosec // it spreads requests
		}
		timer := time.NewTimer(pause)
		// Cases: the next refresh is due; a client asks; the verifier stops.
		select {
		case <-timer.C:
		case <-r.asked:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// refresh makes one request, and reports whether it brought keys.
func (r *remoteKeys) refresh(ctx context.Context) bool {
	r.begin()
	limited, cancel := context.WithTimeout(ctx, keysTime)
	defer cancel()
	set, err := safely(func() (keySet, error) {
		text, err := r.from.fetch(limited)
		if err != nil {
			return keySet{}, err
		}
		return parseKeySet(text)
	})
	if ctx.Err() != nil {
		return false // it failed because the verifier stops
	}
	before, now := r.end(set, err)
	report(r.log, before, now)
	return err == nil
}

func (r *remoteKeys) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = time.Now()
	if r.ended == nil {
		r.ended = make(chan struct{})
	}
	select {
	case <-r.asked: // this request serves whoever asked, too
	default:
	}
}

// end keeps the outcome of a request, and wakes the clients that wait for it.
func (r *remoteKeys) end(set keySet, err error) (before, now fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.fault
	if err == nil {
		r.set, r.valid = set, time.Now()
	}
	r.fault = r.fault.after(err, time.Now())
	close(r.ended)
	r.ended = nil
	return before, r.fault
}

func (r *remoteKeys) problem() Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set.problemOf(r.fault, "let this process reach keysURL, and look at caFile and tokenFile; it is tried again")
}
