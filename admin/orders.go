package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// shortestHold bounds an operator's hold from below: a shorter one may end before the next
// listing.
const shortestHold = time.Minute

// OperatorHold is the answer to POST /api/v1/sources/NAME/hold.
type OperatorHold struct {
	Until time.Time `json:"until"` // when it ends by itself
}

// orders takes the orders of operators about a source.
type orders struct{ parts Parts }

// release makes a source drop its held records, and ends an operator's hold of it.
func (o orders) release(w http.ResponseWriter, r *http.Request) {
	supervisor := o.supervisor(w, r)
	if supervisor == nil {
		return
	}
	before := supervisor.Status()
	released, err := supervisor.Release(r.Context())
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "%v; nothing was released, try again", err)
		return
	}
	who, text := o.parts.Access.operator(r), ""
	switch {
	case released > 0:
		text = fmt.Sprintf("%s released %s, which are deleted", who, count(released, "held record"))
	case !before.HeldUntil.IsZero():
		text = who + " ended the hold of the source"
	}
	if text != "" {
		o.parts.Events.Add(events.Event{Kind: events.Hold, Source: before.Name, Text: text})
	}
	reply(w, o.parts.Log, Release{released})
}

// hold makes a source remove nothing that its listings lack, for a time.
func (o orders) hold(w http.ResponseWriter, r *http.Request) {
	supervisor, name := o.supervisor(w, r), r.PathValue("name")
	if supervisor == nil {
		return
	}
	text := r.URL.Query().Get("for")
	d, err := time.ParseDuration(text)
	if err != nil || d < shortestHold || d > supervise.LongestOrder {
		fail(w, http.StatusBadRequest, "for %q is not a duration from %s to %s, such as 30m", text, short(shortestHold), short(supervise.LongestOrder))
		return
	}
	until, err := supervisor.HoldFor(r.Context(), d)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "%v; nothing was changed, try again", err)
		return
	}
	o.parts.Events.Add(events.Event{Kind: events.Hold, Source: name, Text: fmt.Sprintf("%s holds the source until %s: nothing that its listings lack is removed",
		o.parts.Access.operator(r), until.Format(time.RFC3339))})
	reply(w, o.parts.Log, OperatorHold{until})
}

// short writes a duration of whole minutes or hours without zeros.
func short(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

// supervisor returns the source that a request names. If there is none, it answers the
// request and returns nil.
func (o orders) supervisor(w http.ResponseWriter, r *http.Request) *supervise.Supervisor {
	var names []string
	for _, one := range o.parts.Sources() {
		name := one.Status().Name
		if name == r.PathValue("name") {
			return one
		}
		names = append(names, name)
	}
	fail(w, http.StatusNotFound, "no source %q; there are: %s", r.PathValue("name"), strings.Join(names, ", "))
	return nil
}
