package hold

import (
	"errors"
	"fmt"
	"time"
)

// Config configures which drops are suspicious, and for how long the missing records are kept.
type Config struct {
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

// Default returns the settings of a source without configured ones.
func Default() Config { return Config{Share: 0.5, Min: 10, For: time.Minute} }

// Validate reports all invalid values, each with its field.
func (c Config) Validate() error {
	var errs []error
	if !(c.Share >= 0 && c.Share <= 1) { // NaN fails both
		errs = append(errs, errors.New("share: must be between 0 and 1, such as 0.5 (half); 1 checks each service, but not the whole source"))
	}
	if c.Min < 0 {
		errs = append(errs, errors.New("min: must not be negative; it is a number of endpoints, such as 10; a large number with share: 1 disables holds"))
	}
	if c.For <= 0 {
		errs = append(errs, errors.New("for: must be more than 0, such as 60s"))
	}
	return errors.Join(errs...)
}

// Interval returns the time between a listing and the next requested one. Listings
// that come exactly on request confirm a loss when its records were held for For.
func (c Config) Interval() time.Duration {
	return max(c.For/(confirmations-1), 10*time.Millisecond)
}

// Suspicious reports whether a source may not lose so many endpoints of a total.
func (c Config) Suspicious(lost, total int) bool {
	return c.judgesAll() && lost > 0 && lost >= c.Min && float64(lost) >= c.Share*float64(total)
}

// judgesAll reports whether a source is judged as a whole, and not only service by
// service.
func (c Config) judgesAll() bool { return c.Share < 1 }

// SuspiciousAlone reports whether a service that had so many endpoints may not lose
// all of them.
func (c Config) SuspiciousAlone(had int) bool { return had > c.Min }

// Confirms reports whether so many listings, the first of them at a given time,
// confirm that a record is gone.
func (c Config) Confirms(listings int, first, now time.Time) bool {
	return listings >= confirmations && now.Sub(first) >= c.For
}

// Terms describes when held records of a source are deleted, and how an operator
// deletes them now.
func (c Config) Terms(source string) string {
	return fmt.Sprintf("%d listings in a row that span %s lack them; if they are really gone, run: isthmus sources release %s", confirmations, c.For, source)
}
