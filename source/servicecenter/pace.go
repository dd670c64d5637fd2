package servicecenter

import "time"

// A round takes at most a fifth of the time, so that a registry that is slow is
// asked less often. After a round that found changes the next one comes sooner:
// changes hardly ever come alone.
const (
	restAfter = 4 // times as long as the round took
	hurry     = 2 // times as soon after changes
)

// nextRound is how long to wait after a round. Random is from 0 to 1, and has
// many readers of one registry drift apart.
func nextRound(poll, took time.Duration, changed bool, random float64) time.Duration {
	wait := poll
	if changed {
		wait = max(poll/hurry, min(poll, shortestPoll))
	}
	wait = max(wait, restAfter*took)
	return time.Duration(float64(wait) * (0.9 + 0.2*random))
}
