package controller

import (
	"errors"
	"time"
)

// Backoff says how long a key that fails waits. The wait doubles with every
// failure from First up to Limit, and the upper half of it is random, so that
// keys which fail together do not return together.
type Backoff struct{ First, Limit time.Duration }

// DefaultBackoff suits a server that answers within a second.
func DefaultBackoff() Backoff { return Backoff{First: 250 * time.Millisecond, Limit: 30 * time.Second} }

// wait returns the wait after so many failures, for a random number in [0, 1).
func (b Backoff) wait(failures int, random float64) time.Duration {
	ceiling := b.First
	for i := 1; i < failures && ceiling < b.Limit; i++ {
		ceiling *= 2
	}
	ceiling = min(ceiling, b.Limit)
	return ceiling/2 + time.Duration(random*float64(ceiling-ceiling/2))
}

// Retry is an error that says itself when a key is to be tried again. Until
// then it is not, even if the key changes.
type Retry struct {
	Err   error
	After time.Duration
}

func (l *Retry) Error() string { return l.Err.Error() }

// Unwrap returns the error itself.
func (l *Retry) Unwrap() error { return l.Err }

func retryAfter(err error) (time.Duration, bool) {
	if later := (*Retry)(nil); errors.As(err, &later) {
		return later.After, true
	}
	return 0, false
}
