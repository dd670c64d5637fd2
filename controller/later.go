package controller

import (
	"errors"
	"time"
)

// Later is an error that says itself when a key is to be tried again. Until
// then it is not, even if the key changes.
type Later struct {
	Err   error
	After time.Duration
}

func (l *Later) Error() string { return l.Err.Error() }

// Unwrap returns the error itself.
func (l *Later) Unwrap() error { return l.Err }

func retryAfter(err error) (time.Duration, bool) {
	if later := (*Later)(nil); errors.As(err, &later) {
		return later.After, true
	}
	return 0, false
}
