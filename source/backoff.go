package source

import "time"

// backoff decides how long to wait before a failed source is run again. It
// holds no clock and no randomness, so that its law can be read off a table.
type backoff struct {
	floor, limit time.Duration
	ceiling      time.Duration // of the last wait; zero when nothing has failed yet
}

// next returns the wait after one more failure: anything between the floor and
// a ceiling that doubles with every failure, chosen by random in [0, 1). All of
// that range is used, so that sources that fail together do not return together.
func (b *backoff) next(random float64) time.Duration {
	b.ceiling = min(max(2*b.ceiling, 2*b.floor), b.limit)
	return b.floor + time.Duration(random*float64(b.ceiling-b.floor))
}

// reset forgets the failures so far.
func (b *backoff) reset() { b.ceiling = 0 }
