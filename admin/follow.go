package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/internal/plain"
)

const (
	// followersAtOnce bounds the followers of events. Each keeps a connection and a place
	// among responsesAtOnce.
	followersAtOnce = 16
	// heartbeat is the interval between two signs of life to a follower.
	heartbeat = 15 * time.Second
	// gatherTime is the time between two looks for events, which under churn are many.
	gatherTime = 100 * time.Millisecond
)

// followers are the requests that follow events.
type followers struct {
	places   *semaphore.Weighted
	stopping chan struct{} // closed when the server stops
}

func newFollowers() *followers {
	return &followers{semaphore.NewWeighted(followersAtOnce), make(chan struct{})}
}

// wantsStream reports whether a request asks for server-sent events.
func wantsStream(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// follow sends the events after a serial, and then each new one, until the client leaves or
// the server stops. While it waits, others make pages.
func (f feed) follow(w http.ResponseWriter, r *http.Request, after uint64, selects func(events.Event) bool) {
	if !f.followers.places.TryAcquire(1) {
		w.Header().Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, "%d clients follow events already, which is all that are served; end one, or read GET /api/v1/events again and again", followersAtOnce)
		return
	}
	defer f.followers.places.Release(1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	if write(w, ": events of Isthmus\n\n") != nil {
		return
	}
	for {
		next := f.parts.Events.Next() // before the look, so that no event falls between
		list, last, lost := f.parts.Events.After(after)
		text := streamed(list, lost, selects)
		after = last
		if len(text) > 0 && write(w, text) != nil {
			return
		}
		if !f.awaitEvent(w, r, next, alive.C) {
			return
		}
	}
}

// awaitEvent flushes the written events and waits for the next. It reports whether the client
// still follows. Cases: the client leaves; the server stops; an event; a sign of life is due.
func (f feed) awaitEvent(w http.ResponseWriter, r *http.Request, next <-chan struct{}, alive <-chan time.Time) (goes bool) {
	rest(w, func() {
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		gathered := time.NewTimer(gatherTime)
		defer gathered.Stop()
		select {
		case <-r.Context().Done():
			return
		case <-f.followers.stopping:
			return
		case <-gathered.C:
		}
		select {
		case <-r.Context().Done():
		case <-f.followers.stopping:
		case <-next:
			goes = true
		case <-alive:
			goes = true
		}
	})
	select {
	case <-next:
		return goes
	default:
		return goes && write(w, ":\n\n") == nil
	}
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// streamed returns the selected events as server-sent events. An event without an id counts
// the lost ones before them.
func streamed(list []events.Event, lost uint64, selects func(events.Event) bool) string {
	var b strings.Builder
	if lost > 0 {
		fmt.Fprintf(&b, "event: lost\ndata: {\"lost\": %d}\n\n", lost)
	}
	for _, e := range list {
		if !selects(e) {
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			continue // an event is plain values
		}
		fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", e.Serial, e.Kind, plain.JSON(text))
	}
	return b.String()
}
