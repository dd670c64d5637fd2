package servicecenter

import "time"

// The registry is kept busy for at most a fifth of the time, so that one that is
// slow is asked less often; what is done with its answers does not count. After a
// round that found changes the next one comes sooner: changes hardly ever come
// alone.
//
// A round that finds everything anew, such as the first, keeps the registry busy
// for far longer than the next one will. It says little of how slow the
// registry is, and nothing should go unnoticed for long just then, so the rest
// after it has a bound. The next round tells.
const (
	restAfter = 4 // times as long as the registry was busy
	hurry     = 2 // times as soon after changes

	longestRest = 5 * time.Second // after finding everything, unless polls are rarer
)

// nextRound is how long to wait after a round that kept the registry busy for
// some time, and which found changes, or everything anew. Random is from 0 to 1,
// and has many readers of one registry drift apart.
func nextRound(poll, busy time.Duration, changed, everything bool, random float64) time.Duration {
	wait := poll
	if changed {
		wait = max(poll/hurry, min(poll, shortestPoll))
	}
	rest := restAfter * busy
	if everything {
		rest = min(rest, max(poll, longestRest))
	}
	wait = max(wait, rest)
	return time.Duration(float64(wait) * (0.9 + 0.2*random))
}
