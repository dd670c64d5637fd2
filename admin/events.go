package admin

import (
	"cmp"
	"net/http"
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

// feed shows events.
type feed struct {
	parts     Parts
	followers *followers
}

// serve answers with the kept events that the parameters select: after=SERIAL, since=10m,
// source=NAME, client=ID, host=TEXT (a part of a record's name or of the text). For a client
// that accepts text/event-stream it goes on with each new event.
func (f feed) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	serial := cmp.Or(query.Get("after"), "0")
	if wantsStream(r) {
		serial = cmp.Or(r.Header.Get("Last-Event-ID"), serial)
	}
	after, err := strconv.ParseUint(serial, 10, 64)
	if err != nil {
		fail(w, http.StatusBadRequest, "after %q is not the serial of an event, such as 12", serial)
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
	selects := func(e events.Event) bool {
		return !e.Time.Before(oldest) && (query.Get("source") == "" || e.Source == query.Get("source")) &&
			(query.Get("client") == "" || e.Client == events.ClientID(query.Get("client"))) && mentions(e, query.Get("host"))
	}
	if wantsStream(r) {
		f.follow(w, r, after, selects)
		return
	}
	list, last, lost := f.parts.Events.After(after)
	list = slices.DeleteFunc(list, func(e events.Event) bool { return !selects(e) })
	reply(w, f.parts.Log, Events{Events: append([]events.Event{}, list...), Last: last, Lost: lost})
}

// mentions reports whether the text or a name of an event contains a host; true for none.
func mentions(e events.Event, host string) bool {
	return host == "" || strings.Contains(e.Text, host) || slices.ContainsFunc(e.Names, func(name string) bool { return strings.Contains(name, host) })
}
