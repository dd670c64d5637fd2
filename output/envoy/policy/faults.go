package policy

import (
	"fmt"
	"time"
)

// faults are the errors of a validation, each with the path of its field.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, fmt.Errorf(field+": "+format, args...))
}

// within reports a number outside of a range.
func (f *faults) within(field string, n, least, most int, example string) {
	switch {
	case n < least && least == 0:
		f.add(field, "must not be below zero; give %s", example)
	case n < least || n > most:
		f.add(field, "%d is not from %d to %d; give %s", n, least, most, example)
	}
}

// duration reports a time that is too short or implausibly long.
func (f *faults) duration(field string, d time.Duration, example string) {
	const least, most = time.Millisecond, 365 * 24 * time.Hour
	if d < least || d > most {
		f.add(field, "%s is not from %s to %s, such as %s", d, least, most, example)
	}
}

// seconds reports a time that a socket does not take.
func (f *faults) seconds(field string, d time.Duration) {
	const most = 32767 * time.Second
	if d < 0 || d > most || d%time.Second != 0 {
		f.add(field, "%s is not a number of whole seconds from 1s to %s, such as 75s; leave it out for the default of the operating system", d, most)
	}
}
