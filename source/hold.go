package source

import (
	"errors"
	"fmt"
	"time"
)

// Hold configures which drops are suspicious, and for how long the missing records are kept.
type Hold struct {
	// Share of the source's endpoints, and Min of them: a listing is suspicious if
	// the losses within For reach both. With a share of 1 only services are judged. A
	// service is suspicious by itself if it had more than Min endpoints within For
	// and the listing leaves none.
	Share float64 `json:"share"`
	Min   int     `json:"min"`
	// For is the time in which losses add up, and the time that listings must span to
	// confirm a loss.
	For time.Duration `json:"for"`
}

// confirmations is how many listings must lack a held record before it is deleted,
// the first one included.
const confirmations = 3

// DefaultHold returns the settings of a source without configured ones.
func DefaultHold() Hold { return Hold{Share: 0.5, Min: 10, For: time.Minute} }

// Validate reports invalid values, with the field.
func (h Hold) Validate() error {
	switch {
	case !(h.Share >= 0 && h.Share <= 1): // NaN fails both
		return errors.New("share: must be between 0 and 1, such as 0.5 (half); 1 judges each service by itself and never the whole source")
	case h.Min < 0:
		return errors.New("min: must not be negative; it is a number of endpoints, such as 10, and a large one watches no service; with share: 1 it switches holding off")
	case h.For <= 0:
		return errors.New("for: must be more than 0, such as 60s")
	}
	return nil
}

// interval returns the time between a listing and the next requested one. Listings
// that come exactly on request confirm a loss when its records were held for For.
func (h Hold) interval() time.Duration {
	return max(h.For/(confirmations-1), 10*time.Millisecond)
}

// Suspicious reports whether a source may not lose so many endpoints of a total.
func (h Hold) Suspicious(lost, total int) bool {
	return h.judgesAll() && lost > 0 && lost >= h.Min && float64(lost) >= h.Share*float64(total)
}

// judgesAll reports whether a source is judged as a whole, and not only service by
// service.
func (h Hold) judgesAll() bool { return h.Share < 1 }

// SuspiciousAlone reports whether a service that had so many endpoints may not lose
// all of them.
func (h Hold) SuspiciousAlone(had int) bool { return had > h.Min }

// Confirms reports whether so many listings, the first of them at a given time,
// confirm that a record is gone.
func (h Hold) Confirms(listings int, first, now time.Time) bool {
	return listings >= confirmations && now.Sub(first) >= h.For
}

// Terms describes when held records of a source are deleted, and how an operator
// deletes them now.
func (h Hold) Terms(source string) string {
	return fmt.Sprintf("%d listings in a row that span %s lack them; if they are really gone, run: isthmus sources release %s", confirmations, h.For, source)
}
