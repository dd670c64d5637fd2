package servicecenter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// recording is one exchange with the original.
type recording struct {
	file    string
	Request struct {
		Method, Path string
		Headers      map[string]string
		Body         json.RawMessage
		BodyRaw      *string
	}
	Response struct {
		Status  int
		Headers map[string]string
		Body    any
		BodyRaw *string
	}
}

func recordings(t *testing.T, pattern string) []recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var all []recording
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := recording{file: filepath.Base(file)}
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, r)
	}
	return all
}

// replay is a stand-in in a bubble of its own time, and what its ids and
// revisions are called in the recordings.
type replay struct {
	server *servicecenter.Server
	memory *servicecenter.Memory
	client *http.Client
	ours   map[string]string // by what is recorded
}

func startReplay(t *testing.T) *replay {
	t.Helper()
	r := &replay{
		server: servicecenter.New(servicecenter.Config{}),
		memory: servicecenter.NewMemory(),
		ours: map[string]string{
			"vm":                      "standin",
			"rest://127.0.0.1:30100/": "rest://servicecenter.invalid:80/",
			"rest://127.0.0.1:31100/": "rest://servicecenter.invalid:80/",
		},
	}
	transport := &http.Transport{DialContext: r.memory.DialContext}
	r.client = &http.Client{Transport: transport}
	r.server.Serve(r.memory)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		r.server.Close()
	})
	return r
}

// TestTheRecordingsAreReplayed is the proof that the stand-in answers as the
// original did: all that was recorded is asked again in its order and pace.
func TestTheRecordingsAreReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startReplay(t)
		r.before(t)
		var events func() []string
		var last time.Time
		for _, rec := range recordings(t, "[0-9]*.json") {
			if strings.HasPrefix(rec.file, "11-") {
				events = r.watch(t)
			}
			at, err := http.ParseTime(rec.Response.Headers["Date"])
			if err != nil {
				t.Fatal(err)
			}
			if !last.IsZero() {
				time.Sleep(at.Sub(last))
			}
			last = at
			r.ask(t, rec)
		}
		time.Sleep(10 * time.Second)
		r.compareEvents(t, events())
	})
}

// TestTheRecordingsWithoutConsumerAreReplayed is the same for those that were
// made without a consumer, at another server and with more time between.
func TestTheRecordingsWithoutConsumerAreReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startReplay(t)
		for _, rec := range recordings(t, "b*.json") {
			r.ask(t, rec)
			time.Sleep(3 * time.Second)
		}
	})
}

// before registers what the original held when the recording began.
func (r *replay) before(t *testing.T) {
	t.Helper()
	p := r.server.Register(servicecenter.Service{App: "mesh", Name: "p2", Version: "1.0.0"})
	c := r.server.Register(servicecenter.Service{App: "mesh", Name: "c2", Version: "1.0.0"})
	for i, id := range []string{"26e1eb93b4654e31b067e87bbd818d34", "f962278622574118ae6181d3c00b55a5", "cd7893e84c534c7ea513c7a2934a85e9"} {
		r.server.RegisterInstance(p, servicecenter.Instance{
			ID: id, HostName: "h", Endpoints: []string{fmt.Sprintf("rest://10.0.1.%d:80", i+1)},
			HealthCheck: &servicecenter.HealthCheck{Mode: "push", Interval: 60, Times: 3},
		})
	}
	time.Sleep(time.Second)
	var rec recording
	rec.Request.Method, rec.Request.Path = http.MethodGet, "/v4/default/registry/instances?appId=mesh&serviceName=p2"
	rec.Request.Headers = map[string]string{"X-ConsumerId": c}
	status, _, _ := r.exchange(t, rec)
	if status != http.StatusOK {
		t.Fatalf("looking up p2: %d", status)
	}
	time.Sleep(time.Second)
}

// ask repeats a recorded request and compares the answers.
func (r *replay) ask(t *testing.T, rec recording) {
	t.Helper()
	status, header, body := r.exchange(t, rec)
	if status != rec.Response.Status {
		t.Errorf("%s: status %d, recorded is %d: %s", rec.file, status, rec.Response.Status, body)
	}
	for _, name := range []string{"Content-Type", "Server"} {
		if got, want := header.Get(name), rec.Response.Headers[name]; got != want {
			t.Errorf("%s: %s %q, recorded is %q", rec.file, name, got, want)
		}
	}
	r.sameRevision(t, rec, header.Get("X-Resource-Revision"))
	want := rec.Response.Body
	if rec.Response.BodyRaw != nil {
		want = decode(t, *rec.Response.BodyRaw)
	}
	got := decode(t, body)
	r.learn(want, got)
	if diff := cmp.Diff(r.normal(want), normal(got)); diff != "" {
		t.Errorf("%s: body (-recorded +ours):\n%s", rec.file, diff)
	}
}

func (r *replay) sameRevision(t *testing.T, rec recording, got string) {
	t.Helper()
	recorded := rec.Response.Headers["X-Resource-Revision"]
	if r.ours[recorded] == "" {
		r.ours[recorded] = got
	}
	if (recorded == "") != (got == "") || r.ours[recorded] != got {
		t.Errorf("%s: revision %q, want that which was recorded as %q: %q", rec.file, got, recorded, r.ours[recorded])
	}
}

func (r *replay) exchange(t *testing.T, rec recording) (int, http.Header, string) {
	t.Helper()
	body := string(rec.Request.Body)
	if rec.Request.BodyRaw != nil {
		body = *rec.Request.BodyRaw
	}
	if body == "null" {
		body = ""
	}
	request, err := http.NewRequestWithContext(t.Context(), rec.Request.Method,
		"http://servicecenter.invalid"+r.translate(rec.Request.Path), strings.NewReader(r.translate(body)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range rec.Request.Headers {
		request.Header.Set(name, r.translate(value))
	}
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatalf("%s: %v", rec.file, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s: %v", rec.file, err)
	}
	return response.StatusCode, response.Header, string(text)
}

// translate replaces what is called differently here.
func (r *replay) translate(text string) string {
	for recorded, ours := range r.ours {
		if len(recorded) >= 32 { // ids and revisions
			text = strings.ReplaceAll(text, recorded, ours)
		}
	}
	return text
}

// learn finds out how we call what was recorded.
func (r *replay) learn(recorded, got any) {
	switch recorded := recorded.(type) {
	case map[string]any:
		other, _ := got.(map[string]any)
		for k, v := range recorded {
			a, isText := v.(string)
			b, too := other[k].(string)
			if isText && too && (k == "instanceId" || k == "rev") && r.ours[a] == "" {
				r.ours[a] = b
			}
			r.learn(v, other[k])
		}
	case []any:
		other, _ := got.([]any)
		if len(recorded) == 1 && len(other) == 1 || len(recorded) == len(other) && hasIndex(recorded) {
			for i := range recorded {
				r.learn(recorded[i], other[i])
			}
		}
	}
}

// hasIndex holds for the parts of a batch, which are in their order.
func hasIndex(list []any) bool {
	first, ok := list[0].(map[string]any)
	return ok && first["index"] != nil
}

// normal is a recorded body in our terms.
func (r *replay) normal(v any) any {
	return normal(each(v, func(text string) string {
		if ours, ok := r.ours[text]; ok {
			return ours
		}
		return text
	}))
}

// each replaces the texts of a body.
func each(v any, replace func(string) string) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for k, inner := range v {
			all[k] = each(inner, replace)
		}
		return all
	case []any:
		var all []any
		for _, inner := range v {
			all = append(all, each(inner, replace))
		}
		return all
	case string:
		// Keys of the backend are made of ids.
		parts := strings.Split(v, "/")
		for i := range parts {
			parts[i] = replace(parts[i])
		}
		return replace(strings.Join(parts, "/"))
	default:
		return v
	}
}

// normal leaves out what is never the same, and the order of lists, of which
// the original has none.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for k, inner := range v {
			switch _, isNumber := inner.(float64); {
			case k == "timestamp", k == "modTimestamp", k == "goVersion", k == "rev" && isNumber:
				all[k] = "*"
			default:
				all[k] = normal(inner)
			}
		}
		return all
	case []any:
		var all []any
		for _, inner := range v {
			all = append(all, normal(inner))
		}
		if slices.ContainsFunc(all, func(v any) bool { _, isObject := v.(map[string]any); return !isObject }) {
			return all // endpoints and indexes are in their order
		}
		slices.SortStableFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return all
	default:
		return v
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return ""
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// watch watches as the recorded consumer did. What it returns ends the watch
// and returns what it got.
func (r *replay) watch(t *testing.T) func() []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pings := 0
	conn, response, err := websocket.Dial(ctx,
		"ws://servicecenter.invalid/v4/default/registry/microservices/2f944a7fd39e533e861fbd51cf78d4d2667089f0/watcher",
		&websocket.DialOptions{HTTPClient: r.client, OnPingReceived: func(context.Context, []byte) bool {
			pings++
			return true
		}})
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("the watch began with %s", response.Status)
	}
	var events []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			_, text, err := conn.Read(ctx)
			if err != nil {
				return
			}
			events = append(events, string(text))
		}
	})
	return func() []string {
		cancel()
		reading.Wait()
		if pings != 1 {
			t.Errorf("%d pings in 40 s, want one", pings)
		}
		return events
	}
}

// compareEvents compares with the recorded frames of the watch.
func (r *replay) compareEvents(t *testing.T, events []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/watch-consumer.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []any
	for line := range strings.Lines(string(text)) {
		var frame struct{ Kind, Data string }
		if err := json.Unmarshal([]byte(line), &frame); err != nil {
			t.Fatal(err)
		}
		if frame.Kind == "msg" {
			want = append(want, r.normal(decode(t, frame.Data)))
		}
	}
	for _, e := range events {
		got = append(got, normal(decode(t, e)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-recorded +ours):\n%s", diff)
	}
}
