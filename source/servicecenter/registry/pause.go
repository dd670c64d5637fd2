package registry

import (
	"fmt"
	"net/http"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// longestPause bounds the pause that a member can ask for. What is registered meanwhile is
// not seen, so a mistaken proxy must not ask for a day.
const longestPause = 5 * time.Minute

// pauses are the members that have asked for a time without requests, by address.
type pauses map[string]pause

type pause struct {
	until time.Time
	why   error
}

// of returns why a member is not asked now; nil if it may be asked.
func (p pauses) of(member string, now time.Time) error {
	asked, ok := p[member]
	if !ok {
		return nil
	}
	if !now.Before(asked.until) {
		delete(p, member)
		return nil
	}
	return fmt.Errorf("%w; it asks to be left alone until %s", asked.why, asked.until.UTC().Format(time.RFC3339))
}

// note keeps the pause that a member asks for with an answer, if it does.
func (p pauses) note(member string, answer *http.Response, why error) {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return
	}
	now := time.Now()
	if after := wait.RetryAfter(answer.Header, now); after > 0 {
		p[member] = pause{now.Add(min(after, longestPause)), why}
	}
}
