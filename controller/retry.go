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
