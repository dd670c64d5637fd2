package source

import "time"

// sayAgain is how long the log is silent about a source that goes on failing.
const sayAgain = time.Minute

// outage is a row of failures, and what the log has said of it: the first one,
// then no more than one in a minute, and the end. It lasts until the source has
// been live for a while, so one that comes and goes does not fill the log either.
type outage struct {
	failures int
	began    time.Time
	said     time.Time // when a failure was logged last
	text     string    // what was
	open     bool      // the log has not said that it is over
}

// fail notes a failure and reports whether to log it: one that says a defect is
// never kept back for another.
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

// attrs are what the log says of the failures so far.
func (o *outage) attrs(now time.Time) []any {
	if o.failures == 0 {
		return nil
	}
	return []any{"failures", o.failures, "for", now.Sub(o.began).Round(time.Second)}
}
