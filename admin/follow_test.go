package admin_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// eventful serves the admin API of an Isthmus with events. Stop ends it, as SIGTERM does.
func eventful(t *testing.T) (url string, log *events.Log, stop func()) {
	t.Helper()
	log = events.New()
	server := admin.New(admin.Parts{
		Events: log, Metrics: prometheus.NewRegistry(), Config: func() admin.Config { return admin.Config{} },
		Missing: func() []admin.Obstacle { return nil }, Stuck: func() string { return "" },
		Sources: func() []*supervise.Supervisor { return nil }, Snapshot: func() *catalog.Snapshot { return catalog.NewBuilder(nil).Snapshot() },
	})
	l, done := loopback(t), make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		limit, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), until.Patience)
		defer cancel()
		server.Stop(limit)
		if limit.Err() != nil {
			t.Error("the server waited for followers when it stopped")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	}
	t.Cleanup(stop)
	return "http://" + l.Addr().String(), log, stop
}

// follower is a client that follows events.
type follower struct {
	t      *testing.T
	status int
	lines  *bufio.Scanner
	leave  context.CancelFunc
}

func follow(t *testing.T, url string, header ...string) *follower {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &follower{t, response.StatusCode, bufio.NewScanner(response.Body), leave}
}

// next returns the lines of the next event, but for comments.
func (f *follower) next() string {
	f.t.Helper()
	var lines []string
	for f.lines.Scan() {
		switch line := f.lines.Text(); {
		case line == "" && len(lines) > 0:
			return strings.Join(lines, "\n")
		case line != "" && !strings.HasPrefix(line, ":"):
			lines = append(lines, line)
		}
	}
	return "" // it has ended
}

func TestAFollowerGetsEachEventOnce(t *testing.T) {
	t.Parallel()
	url, log, _ := eventful(t)
	log.Add(events.Event{Kind: events.State, Source: "files", Text: "first"})
	log.Add(events.Event{Kind: events.State, Source: "other", Text: "not of this source"})
	f := follow(t, url+"/api/v1/events?source=files")
	expect := func(f *follower, id int, text string) {
		t.Helper()
		got := f.next()
		if !strings.HasPrefix(got, fmt.Sprintf("id: %d\nevent: state\ndata: {", id)) || !strings.Contains(got, `"text":"`+text+`"`) {
			t.Errorf("got %q, want %d: %s", got, id, text)
		}
	}
	expect(f, 1, "first")
	for i := range 3 {
		text := fmt.Sprintf("later %d", i)
		log.Add(events.Event{Kind: events.State, Source: "files", Text: text})
		expect(f, i+3, text)
	}
	// A follower that comes again gets the events since then.
	expect(follow(t, url+"/api/v1/events?source=files", "Last-Event-ID", "4"), 5, "later 2")
	for range 5000 {
		log.Add(events.Event{Kind: events.State, Source: "files", Text: "many"})
	}
	if got := follow(t, url+"/api/v1/events").next(); got != "event: lost\ndata: {\"lost\": 909}" {
		t.Errorf("got %q", got)
	}
}

// Followers are bounded, keep no client from a page, make room when they leave, and end when the
// server stops.
func TestFollowersCostOthersNothing(t *testing.T) {
	t.Parallel()
	url, log, stop := eventful(t)
	var all []*follower
	for range 16 {
		f := follow(t, url+"/api/v1/events")
		if f.status != http.StatusOK {
			t.Fatalf("follower %d is answered %d", len(all), f.status)
		}
		all = append(all, f)
	}
	if f := follow(t, url+"/api/v1/events"); f.status != http.StatusServiceUnavailable {
		t.Errorf("one follower too many is answered %d", f.status)
	}
	if status, body := call(t, http.MethodGet, url+"/api/v1/events"); status != http.StatusOK || !strings.Contains(body, `"last": 0`) {
		t.Errorf("a page is answered %d: %s", status, body)
	}
	all[0].leave()
	until.NoError(t, time.Millisecond, "the place of one that left", func() error {
		f := follow(t, url+"/api/v1/events")
		if f.status != http.StatusOK {
			return fmt.Errorf("it answers %d", f.status)
		}
		all[0] = f
		return nil
	})
	log.Add(events.Event{Kind: events.Leader, Text: "for all"})
	for i, f := range all {
		if got := f.next(); !strings.Contains(got, "for all") {
			t.Errorf("follower %d got %q", i, got)
		}
	}
	stop()
	if i := slices.IndexFunc(all, func(f *follower) bool { return f.next() != "" }); i >= 0 {
		t.Errorf("follower %d goes on", i)
	}
}
