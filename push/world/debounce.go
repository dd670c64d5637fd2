package world

import "time"

// Debounce delays changes so that a burst becomes one. The zero value delays nothing.
type Debounce struct {
	// Quiet is the time without changes after which a burst counts as over.
	Quiet time.Duration `json:"quiet"`
	// Max bounds the delay of the first change of a burst, however long the
	// burst goes on. Zero means no bound.
	Max time.Duration `json:"max"`
	// Events is the number of changes after which the wait ends. Zero means no such number.
	Events int `json:"events"`
}

// Due returns when a burst is to be delivered: first and last are when its first and its
// newest change came, events is their number. Due is a pure function, so a test can show
// that a steady trickle does not starve.
func (d Debounce) Due(first, last time.Time, events int) time.Time {
	if d.Events > 0 && events >= d.Events {
		return last
	}
	due := last.Add(d.Quiet)
	if limit := first.Add(d.Max); d.Max > 0 && limit.Before(due) {
		return limit
	}
	return due
}
