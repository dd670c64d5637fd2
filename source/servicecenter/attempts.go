package servicecenter

import (
	"crypto/sha256"
	"time"
)

// The registry locks an account, for a quarter of an hour, at the third login
// within that time that it rejects. So no more than one login that may have
// been rejected is made in a longer time, and one more with another password or
// with one that was right before: two are never a third.
const (
	lockWindow     = 20 * time.Minute
	mostRejections = 2
)

// attempts are the logins that did not succeed, of late.
type attempts struct {
	at   []time.Time
	last [sha256.Size]byte // hash of the password tried last
	good [sha256.Size]byte // hash of the password that was taken last
}

// wait is how long not to log in with a password; zero if it may be tried now.
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

// begin counts a login before it is made: one that is never answered may have
// been rejected.
func (a *attempts) begin(password []byte, now time.Time) {
	a.at = append(a.at, now)
	a.last = sha256.Sum256(password)
}

// succeeded forgets what was rejected before.
func (a *attempts) succeeded(password []byte) { a.at, a.good = nil, sha256.Sum256(password) }

// uncount takes back a login that nobody judged.
func (a *attempts) uncount() { a.at = a.at[:len(a.at)-1] }
