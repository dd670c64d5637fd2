// Package moment keeps times in little memory.
package moment

import "time"

// Moment is a time in nanoseconds since 1970, at a third of the memory of a [time.Time]. Zero is an
// unknown time.
type Moment int64

// Of returns the moment of a time.
func Of(t time.Time) Moment {
	if t.IsZero() {
		return 0
	}
	return Moment(t.UnixNano())
}

// Time returns the time of the moment.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}
