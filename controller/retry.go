package controller

import (
	"errors"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// The bounds of the wait of a failed key, in general and after a [Temporary] failure.
const (
	shortestWait  = 125 * time.Millisecond
	longestWait   = 30 * time.Second
	longestOutage = 3 * time.Second
)

// pause returns the wait after so many failures in a row, and whether it is fixed.
func pause(err error, failures int, random float64) (after time.Duration, fixed bool) {
	if asked, ok := retryAfter(err); ok {
		return max(asked, shortestWait), true // a Retry without a wait must not become a busy loop
	}
	backoff := wait.Backoff{Min: shortestWait, Max: longestWait}
	if isTemporary(err) {
		backoff.Max = longestOutage
	}
	return backoff.After(failures, random), false
}

// Retry is an error with its own backoff: the key is tried again after After. A change of
// the key does not shorten the wait.
type Retry struct {
	Err   error
	After time.Duration
}

func (r *Retry) Error() string { return r.Err.Error() }

// Unwrap returns Err.
func (r *Retry) Unwrap() error { return r.Err }

// retryAfter returns the backoff of a [Retry].
func retryAfter(err error) (after time.Duration, ok bool) {
	if r := (*Retry)(nil); errors.As(err, &r) {
		return r.After, true
	}
	return 0, false
}

// Temporary is a failure of the other system or of the connection to it, not of the key.
// It usually ends for many keys at once, so they are retried within 3 s.
type Temporary struct{ Err error }

func (t *Temporary) Error() string { return t.Err.Error() }

// Unwrap returns Err.
func (t *Temporary) Unwrap() error { return t.Err }

func isTemporary(err error) bool {
	t := (*Temporary)(nil)
	return errors.As(err, &t)
}
