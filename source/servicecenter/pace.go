package servicecenter

import "time"

// The registry is kept busy for at most a fifth of the time, so that one that is
// slow is asked less often; what is done with its answers does not count. After a
// round that found changes the next one comes sooner: changes hardly ever come
// alone.
const (
	restAfter = 4 // times as long as the registry was busy
	hurry     = 2 // times as soon after changes
)

// nextRound is how long to wait after a round that kept the registry busy for
// some time. Random is from 0 to 1, and has many readers of one registry drift
// apart.
func nextRound(poll, busy time.Duration, changed bool, random float64) time.Duration {
	wait := poll
	if changed {
		wait = max(poll/hurry, min(poll, shortestPoll))
	}
	wait = max(wait, restAfter*busy)
	return time.Duration(float64(wait) * (0.9 + 0.2*random))
}
