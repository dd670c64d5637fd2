// Package rate spaces events so that they keep a rate.
package rate

import "time"

// Rate is a number of events per second, after a burst.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Bucket spaces events so that they keep a [Rate]. It has no clock, no lock
// and no goroutine.
type Bucket struct {
	interval, slack time.Duration
	next            time.Time // when the next event would come at an even spacing
}

// New returns a bucket that keeps a rate.
func New(r Rate) Bucket {
	interval := time.Duration(float64(time.Second) / r.PerSecond)
	return Bucket{interval: interval, slack: interval * time.Duration(max(r.Burst-1, 0))}
}

// Take reserves events and returns the wait until the last of them. If that is longer than
// most, ok is false, and no event is reserved.
func (b *Bucket) Take(now time.Time, events int, most time.Duration) (wait time.Duration, ok bool) {
	last := b.next
	if last.Before(now) {
		last = now
	}
	last = last.Add(b.interval * time.Duration(events-1))
	if wait = max(last.Sub(now)-b.slack, 0); wait > most {
		return 0, false
	}
	b.next = last.Add(b.interval)
	return wait, true
}

// Rests reports whether a bucket is in its initial state.
func (b *Bucket) Rests(now time.Time) bool { return !b.next.After(now) }
