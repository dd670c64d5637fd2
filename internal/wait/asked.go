package wait

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns the wait that the header of an answer asks for, at most a day; zero if
// it asks for none. See RFC 9110, 10.2.3; servers of Azure say it in milliseconds, too.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	for _, header := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if ms, err := strconv.Atoi(h.Get(header)); err == nil && ms > 0 {
			return time.Duration(ms) * time.Millisecond
		}
	}
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(24*time.Hour/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
