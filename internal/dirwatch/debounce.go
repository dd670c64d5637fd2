package dirwatch

import "time"

// Debounce says how long a change waits for more of it, so that a file is not
// read while it is being written.
type Debounce struct {
	Quiet time.Duration // without events, after which a change is taken to be complete
	Most  time.Duration // that a change waits although events keep coming
}

// Due is when to look at a change whose first and newest events came then.
func (d Debounce) Due(first, newest time.Time) time.Time {
	due := newest.Add(d.Quiet)
	if limit := first.Add(d.Most); limit.Before(due) {
		return limit
	}
	return due
}
