package identity

import (
	"fmt"
	"time"
)

// Problem is a lasting failure of proofs or certificates, such as of the keys of an issuer.
type Problem struct {
	About  string    // such as: issuer "https://issuer.example"
	Reason string    // with its consequence
	Since  time.Time // when a failure of reading began; zero for content that cannot be used
	Next   string    // the step that helps
}

// String returns the problem without its next step.
func (p Problem) String() string {
	if p.Since.IsZero() {
		return p.About + ": " + p.Reason
	}
	return p.About + ": since " + fault{since: p.Since}.when() + " " + p.Reason
}

// problemOf describes a lasting fault, or keys that are ambiguous. Repair is the step that makes
// them readable.
func (s keySet) problemOf(f fault, repair string) Problem {
	switch {
	case f.err != nil:
		return Problem{Since: f.since, Reason: fmt.Sprintf("its keys cannot be read: %v; the last ones are used for %s at most", f.err, mostAge), Next: repair}
	case len(s.twice) > 0:
		return Problem{Reason: fmt.Sprintf("several of its keys have the id %s, so none of them is used", clip(s.twice[0])), Next: "have the issuer give each key an id of its own"}
	case s.keys != nil && len(s.keys) == 0:
		return Problem{Reason: "its set has no key for signatures of tokens; all its tokens are rejected", Next: "have the issuer publish the key that signs its tokens"}
	default:
		return Problem{}
	}
}

// safely reads foreign content. A panic of a parser is an error, so that the last valid content
// stays in use.
func safely[T any](read func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading it panicked: %v; please report it", p)
		}
	}()
	return read()
}
