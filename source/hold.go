package source

import (
	"errors"
	"fmt"
	"time"
)

// Hold says which drops are suspicious, and for how long they are held back.
type Hold struct {
	// Share of the source's endpoints, and Min of them: a listing that lacks more
	// than the one and at least the other is suspicious, and so is one that lacks
	// everything the source had, however little. With a share of 1 only services
	// count. One that lacks all endpoints of a service that had more than Min is
	// suspicious as far as this service goes.
	Share float64 `json:"share"`
	Min   int     `json:"min"`
	// For is what the equal listings must span that confirm a drop.
	For time.Duration `json:"for"`
}

// confirmations is how many equal listings confirm a drop, the first included.
const confirmations = 3

// DefaultHold is what holds where nothing else is said.
func DefaultHold() Hold { return Hold{Share: 0.5, Min: 10, For: time.Minute} }

// Validate reports what is wrong, with the field.
func (h Hold) Validate() error {
	switch {
	case !(h.Share >= 0 && h.Share <= 1): // not a number is neither
		return errors.New("share: must be from 0 to 1, such as 0.5 for one half; 1 leaves services as a whole to be watched")
	case h.Min < 0:
		return errors.New("min: must not be negative; it is a number of endpoints, such as 10, and a large one watches no service; with share: 1 it switches holding off")
	case h.For <= 0:
		return errors.New("for: must be more than 0, such as 60s")
	}
	return nil
}

// interval is how long after a listing the next one is asked for. Listings
// that come just as asked confirm a drop when it has been held for For.
func (h Hold) interval() time.Duration {
	return max(h.For/(confirmations-1), 10*time.Millisecond)
}

// Suspicious reports whether a source of so many endpoints may not lose that many.
func (h Hold) Suspicious(lost, total int) bool {
	return lost > 0 && lost >= h.Min && float64(lost) > h.Share*float64(total)
}

// watchesAll reports whether a source is judged as a whole, and not only service
// by service.
func (h Hold) watchesAll() bool { return h.Share < 1 }

// SuspiciousAlone reports whether a service may not lose that many endpoints,
// being all it had.
func (h Hold) SuspiciousAlone(lost int) bool { return lost > h.Min }

// Confirms reports whether so many equal listings, of which the first came when
// it did, confirm a drop.
func (h Hold) Confirms(listings int, first, now time.Time) bool {
	return listings >= confirmations && now.Sub(first) >= h.For
}

// Terms says in words what confirms a drop of a source, and how an operator does.
func (h Hold) Terms(source string) string {
	return fmt.Sprintf("%d equal listings that span %s confirm it; if they are really gone, run: isthmus sources release %s", confirmations, h.For, source)
}
