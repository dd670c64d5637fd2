package supervise

import "time"

// sayAgain is how long the log is silent about a source that goes on failing.
const sayAgain = time.Minute

// outage is a series of failures, and its log state. The log contains the first one,
// then at most one a minute, and the end. An outage lasts until the source has been
// live for a while. So an intermittent failure does not fill the log either.
type outage struct {
	failures int
	began    time.Time
	said     time.Time // when a failure was logged last
	text     string    // text of that failure
	open     bool      // the log does not contain the end yet
}

// fail counts a failure and reports whether to log it. A defect is always logged,
// unless it repeats the last text.
func (o *outage) fail(text string, defect bool, now time.Time) bool {
	o.failures++
	if o.failures == 1 {
		o.began = now
	} else if now.Sub(o.said) < sayAgain && (!defect || text == o.text) {
		return false
	}
	o.said, o.text, o.open = now, text, true
	return true
}

// recover notes that the source is mirrored again, and reports whether to log it.
func (o *outage) recover() bool {
	open := o.open
	o.open = false
	return open
}

// attrs returns the log attributes of the failures so far.
func (o *outage) attrs(now time.Time) []any {
	if o.failures == 0 {
		return nil
	}
	return []any{"failures", o.failures, "for", now.Sub(o.began).Round(time.Second)}
}
