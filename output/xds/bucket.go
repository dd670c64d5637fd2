package xds

import "time"

// bucket spaces events so that they keep a [Rate]. It has no clock, no lock
// and no goroutine.
type bucket struct {
	interval, slack time.Duration
	next            time.Time // when the next event would come if all were evenly spaced
}

func newBucket(r Rate) bucket {
	interval := time.Duration(float64(time.Second) / r.PerSecond)
	return bucket{interval: interval, slack: interval * time.Duration(max(r.Burst-1, 0))}
}

// take makes an event wait for its turn, unless that would be longer than most:
// then it is not ok, and it has not happened.
func (b *bucket) take(now time.Time, most time.Duration) (wait time.Duration, ok bool) {
	next := b.next
	if next.Before(now) {
		next = now
	}
	if wait = max(next.Sub(now)-b.slack, 0); wait > most {
		return 0, false
	}
	b.next = next.Add(b.interval)
	return wait, true
}
