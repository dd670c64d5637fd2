package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// emptied is a source that lists some endpoints, then none, and tells.
type emptied chan struct{}

func (e emptied) Run(ctx context.Context, sink source.Sink) error {
	full := model.Object{Record: model.Record{
		Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Namespace: "shop", Name: "reviews"}},
		Spec: model.Service{Hosts: model.ListOf("reviews.example"), Ports: model.ListOf(model.Port{Number: 80, Name: "http"})},
	}}
	for i := range 12 {
		address := fmt.Sprintf("10.0.0.%d", i)
		full.Owned = append(full.Owned, model.Record{
			Ref:  model.Ref{Kind: model.KindEndpoint, Key: model.Key{Namespace: "shop", Name: "reviews/" + address}},
			Spec: model.Endpoint{Address: address},
		})
	}
	for _, objects := range [][]model.Object{{full}, nil} {
		if err := sink.Replace(ctx, model.Listing{Objects: objects}); err != nil {
			return err
		}
	}
	close(e)
	<-ctx.Done()
	return ctx.Err()
}

// held serves the admin API of an Isthmus whose first source holds everything.
func held(t *testing.T) (url string) {
	t.Helper()
	return "http://" + heldOn(t, loopback(t), admin.Access{})
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// heldOn is held for a listener and who may ask there.
func heldOn(t *testing.T, l net.Listener, access admin.Access) (address string) {
	t.Helper()
	memory := store.NewMemory(store.Config{})
	src := make(emptied)
	legacy := supervise.New("legacy", src, memory, supervise.Config{Kind: "fake"})
	other := supervise.New("other", src, memory, supervise.Config{Kind: "fake"})
	server := admin.New(admin.Parts{
		Access: access, Missing: func() []admin.Obstacle { return nil }, Stuck: func() string { return "" },
		Config:  func() admin.Config { return admin.Config{} },
		Sources: func() []*supervise.Supervisor { return []*supervise.Supervisor{legacy, other} }, Metrics: prometheus.NewRegistry(),
		Snapshot: func() *catalog.Snapshot {
			b := catalog.NewBuilder(nil)
			var events []model.Event
			for rec := range memory.List(model.Filter{}) {
				events = append(events, model.Upsert{Record: rec})
			}
			b.Apply(memory.Revision(), events)
			return b.Snapshot()
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- legacy.Run(ctx) }()
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		cancel()
		server.Stop(context.WithoutCancel(ctx))
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		http.DefaultClient.CloseIdleConnections()
	})
	<-src
	return l.Addr().String()
}

// call returns the status and the body of an answer.
func call(t *testing.T, method, url string, header ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	request.Host = request.Header.Get("Host") // empty for that of the URL
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestHeldSourceIsShown(t *testing.T) {
	url := held(t)
	_, body := call(t, http.MethodGet, url+"/api/v1/sources")
	var sources []admin.Source
	if err := json.Unmarshal([]byte(body), &sources); err != nil {
		t.Fatal(err)
	}
	if s := sources[0]; s.State != "held" || s.Held != 13 || s.Endpoints != 12 || !strings.Contains(s.Reason, "sources release legacy") {
		t.Errorf("the source is shown as %+v", s)
	}

	_, body = call(t, http.MethodGet, url+"/api/v1/services/reviews.example")
	var services []admin.Service
	if err := json.Unmarshal([]byte(body), &services); err != nil {
		t.Fatal(err)
	}
	if r := services[0].Records[0]; r.Held == "" || r.Stale != "" || r.Age == "" {
		t.Errorf("the record is shown as %+v", r)
	}
	if e := services[0].Instances; len(e) != 12 || !e[0].Held {
		t.Errorf("the endpoints are shown as %+v", e)
	}

	_, body = call(t, http.MethodGet, url+"/metrics")
	for _, want := range []string{`isthmus_source_held{source="legacy"} 13`, `isthmus_source_up{kind="fake",source="legacy"} 0`} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no metric %s in\n%s", want, body)
		}
	}
}

func TestRelease(t *testing.T) {
	url, asJSON := held(t), []string{"Content-Type", "application/json"}
	release := url + "/api/v1/sources/legacy/release"
	kinds := []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "text/plain; a=application/json"}
	for _, kind := range kinds {
		status, answer := call(t, http.MethodPost, release, "Content-Type", kind)
		if status != http.StatusUnsupportedMediaType || !strings.Contains(answer, "send the header Content-Type: application/json") {
			t.Errorf("%q is answered with %d %s", kind, status, answer)
		}
	}
	for _, c := range []struct {
		method, url string
		header      []string
		status      int
		answer      string
	}{
		{http.MethodPost, url + "/api/v1/sources/nobody/release", asJSON, 404, "no source \"nobody\"; there are: legacy, other\n"},
		{http.MethodPost, release, append([]string{"Sec-Fetch-Site", "cross-site"}, asJSON...), 403, "cross-origin request detected from Sec-Fetch-Site header\n"},
		{http.MethodPost, release, append([]string{"Origin", "http://evil.example"}, asJSON...), 403, "cross-origin request detected, and/or browser is out of date: Sec-Fetch-Site is missing, and Origin does not match Host\n"},
		{http.MethodPost, release, []string{"Content-Type", "Application/JSON; charset=utf-8"}, 200, "{\n  \"released\": 13\n}\n"},
		{http.MethodPost, release, asJSON, 200, "{\n  \"released\": 0\n}\n"},
		{http.MethodPost, url + "/api/v1/sources/other/release", asJSON, 200, "{\n  \"released\": 0\n}\n"},
	} {
		status, answer := call(t, c.method, c.url, c.header...)
		if diff := cmp.Diff(c.answer, answer); status != c.status || diff != "" {
			t.Errorf("%s %s: status %d, want %d; answer (-want +got):\n%s", c.method, c.url, status, c.status, diff)
		}
	}
	if status, _ := call(t, http.MethodGet, release); status != http.StatusMethodNotAllowed {
		t.Errorf("a GET is answered with %d", status)
	}
	if _, body := call(t, http.MethodGet, url+"/api/v1/sources"); !strings.Contains(body, `"state": "live"`) {
		t.Errorf("after the release:\n%s", body)
	}
}
