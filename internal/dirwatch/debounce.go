package dirwatch

import "time"

// Debounce delays the handling of a change, so that a file is not read while it is being
// written.
type Debounce struct {
	Quiet time.Duration // time without events after which a change counts as complete
	Most  time.Duration // longest delay of a change while events keep coming
}

// Due returns when to handle a change, given the times of its first and newest events.
func (d Debounce) Due(first, newest time.Time) time.Time {
	due := newest.Add(d.Quiet)
	if limit := first.Add(d.Most); limit.Before(due) {
		return limit
	}
	return due
}
