package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
)

// Events is the answer to GET /api/v1/events.
type Events struct {
	Events []events.Event `json:"events"` // oldest first
	// Last is the serial of the newest event; the parameter after of the next request.
	Last uint64 `json:"last"`
	// Lost counts the events after the given serial that are not kept any more.
	Lost uint64 `json:"lost,omitempty"`
}

// events answers with the kept events that the parameters select: after=SERIAL, since=10m,
// source=NAME, client=ID, host=TEXT (a part of a record's name or of the text).
func (a api) events(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	after, err := strconv.ParseUint(orZero(query, "after"), 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, "after %q is not the serial of an event, such as 12", query.Get("after"))
		return
	}
	var oldest time.Time
	if since := query.Get("since"); since != "" {
		d, err := time.ParseDuration(since)
		if err != nil || d < 0 {
			fail(w, http.StatusBadRequest, "since %q is not a duration, such as 10m", since)
			return
		}
		oldest = time.Now().Add(-d)
	}
	list, last, lost := a.parts.Events.After(after)
	list = slices.DeleteFunc(list, func(e events.Event) bool {
		return e.Time.Before(oldest) || query.Get("source") != "" && e.Source != query.Get("source") ||
			query.Get("client") != "" && e.Client != events.ClientID(query.Get("client")) || !mentions(e, query.Get("host"))
	})
	reply(w, a.parts.Log, Events{Events: append([]events.Event{}, list...), Last: last, Lost: lost})
}

func orZero(query url.Values, name string) string {
	if value := query.Get(name); value != "" {
		return value
	}
	return "0"
}

// mentions reports whether the text or a name of an event contains a host; true for none.
func mentions(e events.Event, host string) bool {
	return host == "" || strings.Contains(e.Text, host) || slices.ContainsFunc(e.Names, func(name string) bool { return strings.Contains(name, host) })
}
