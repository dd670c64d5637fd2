package controller

import (
	"errors"
	"time"
)

// Retry is an error that says itself when a key is to be tried again. Until
// then it is not, even if the key changes.
type Retry struct {
	Err   error
	After time.Duration
}

func (r *Retry) Error() string { return r.Err.Error() }

// Unwrap returns the error itself.
func (r *Retry) Unwrap() error { return r.Err }

func retryAfter(err error) (time.Duration, bool) {
	if later := (*Retry)(nil); errors.As(err, &later) {
		return later.After, true
	}
	return 0, false
}

// Temporary is an error of the other system, or of the way to it, rather than of
// the key: it ends for many keys at once, and they are to be tried soon after.
type Temporary struct{ Err error }

func (t *Temporary) Error() string { return t.Err.Error() }

// Unwrap returns the error itself.
func (t *Temporary) Unwrap() error { return t.Err }

func isTemporary(err error) bool {
	t := (*Temporary)(nil)
	return errors.As(err, &t)
}
