package servicecenter

import (
	"time"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/mirror"
)

// The registry is kept busy for at most a fifth of the time, so a slow one is asked
// less often. Processing its answers does not count. After a round that found changes
// the next one comes sooner: changes hardly ever come alone.
//
// A round that finds everything anew, such as the first, keeps the registry busy far
// longer than the next. Its duration does not show how slow the registry is, and
// changes should not go unnoticed for long just then. So the rest after it has a
// bound, and the next round measures again.
const (
	restAfter = mirror.RestAfter // times as long as the registry was busy
	hurry     = 2                // times as soon after changes

	longestRest = 5 * time.Second // after finding everything, unless polls are rarer
)

// nextRound returns the wait after a round. The inputs are how long the registry was
// busy, and whether the round found changes, or everything anew. Random is from 0 to
// 1, and spreads the requests of many readers of one registry.
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
