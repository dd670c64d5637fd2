package registry

import (
	"crypto/sha256"
	"time"
)

// The registry locks an account for a quarter of an hour at the third rejected login
// within that time. So at most one login that may have been rejected is made in a
// longer time. One more is made with another password, or with the password accepted
// last: two are never a third.
const (
	lockWindow     = 20 * time.Minute
	mostRejections = 2
)

// attempts are the recent logins that did not succeed.
type attempts struct {
	at   []time.Time
	last [sha256.Size]byte // hash of the password tried last
	good [sha256.Size]byte // hash of the password accepted last
}

// wait returns how long not to log in with a password; zero if it may be tried now.
func (a *attempts) wait(password []byte, now time.Time) time.Duration {
	var recent []time.Time
	for _, t := range a.at {
		if age := now.Sub(t); age < lockWindow {
			recent = append(recent, t)
		}
	}
	a.at = recent
	sum := sha256.Sum256(password)
	switch {
	case len(recent) == 0:
		return 0
	case len(recent) < mostRejections && (sum != a.last || sum == a.good):
		return 0
	case len(recent) < mostRejections:
		return recent[len(recent)-1].Add(lockWindow).Sub(now)
	default:
		return recent[len(recent)-mostRejections].Add(lockWindow).Sub(now)
	}
}

// begin counts a login before it is made: an unanswered login may have been rejected.
func (a *attempts) begin(password []byte, now time.Time) {
	a.at = append(a.at, now)
	a.last = sha256.Sum256(password)
}

// succeeded forgets earlier rejections.
func (a *attempts) succeeded(password []byte) { a.at, a.good = nil, sha256.Sum256(password) }

// uncount takes back a login that no member checked.
func (a *attempts) uncount() { a.at = a.at[:len(a.at)-1] }
