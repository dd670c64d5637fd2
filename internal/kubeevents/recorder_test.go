package kubeevents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/internal/kubeevents"
)

// server is an API server, as far as Events need one. It has every object but those that are
// named "gone".
type server struct {
	t *testing.T

	mu        sync.Mutex
	forbidden bool
	away      bool
	requests  int
	events    []corev1.Event
}

// RoundTrip implements [http.RoundTripper].
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	switch _, name, _ := strings.Cut(r.URL.Query().Get("fieldSelector"), "="); {
	case s.away:
		return nil, errors.New("connection refused")
	case r.Method == http.MethodGet && name == "gone":
		return s.answer(r, http.StatusOK, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"}`), nil
	case r.Method == http.MethodGet:
		return s.answer(r, http.StatusOK, fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":%q,"uid":"u-%[1]s"}}]}`, name)), nil
	case s.forbidden:
		return s.answer(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var e corev1.Event
	if r.Method == http.MethodPost {
		if err := json.Unmarshal(body, &e); err != nil {
			s.t.Error(err)
		}
		s.events = append(s.events, e)
		return s.answer(r, http.StatusCreated, string(body)), nil
	}
	for i := range s.events {
		if s.events[i].Name == path.Base(r.URL.Path) {
			if err := json.Unmarshal(body, &s.events[i]); err != nil {
				s.t.Error(err)
			}
			body, _ = json.Marshal(s.events[i])
			return s.answer(r, http.StatusOK, string(body)), nil
		}
	}
	return s.answer(r, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`), nil
}

func (s *server) answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// has returns the written Events, as text.
func (s *server) has() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		list = append(list, fmt.Sprintf("%s/%s %s %s x%d", e.Namespace, e.InvolvedObject.Name, e.Type, e.Reason, e.Count))
	}
	return list
}

// set changes the behaviour of the server.
func (s *server) set(forbidden, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden, s.away = forbidden, away
}

// recorded runs a test in a bubble, with a running recorder and its log.
func recorded(t *testing.T, run func(r *kubeevents.Recorder, s *server, log *bytes.Buffer)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := &server{t: t}, &bytes.Buffer{}
		client, err := kubeevents.NewClient(&rest.Config{Host: "http://test"}, s, "here")
		if err != nil {
			t.Fatal(err)
		}
		r := kubeevents.New(slog.New(slog.NewTextHandler(log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx, client) })
		run(r, s, log)
		cancel()
		running.Wait()
	})
}

func about(namespace, name string) kubeevents.Object {
	return kubeevents.Object{Resource: "services", Kind: "Service", Namespace: namespace, Name: name}
}

func rejected(namespace, name string) kubeevents.Event {
	return kubeevents.Event{Object: about(namespace, name), Reason: "Rejected", Message: "no ports"}
}

// A wave blocks nobody, keeps little in memory and sends few requests in a second. What it
// drops is counted in one line.
func TestWaveIsBounded(t *testing.T) {
	recorded(t, func(r *kubeevents.Recorder, s *server, log *bytes.Buffer) {
		const wave = 10_000
		began := time.Now()
		for i := range wave {
			r.Warn(rejected("shop", fmt.Sprintf("web-%d", i)))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it blocked for %s", took)
		}
		known := len(r.Warned())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if early := len(s.has()); early > 25+5*10+1 {
			t.Errorf("%d Events were written in 10 s", early)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		written := len(s.has())
		if written != known || written < 200 || written > 300 {
			t.Errorf("%d Events were written, and %d objects are remembered", written, known)
		}
		if want := fmt.Sprintf("count=%d", wave-written); strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q, want one line with %s", log, want)
		}
	})
}

// An object has an Event for each new trouble and for the end of it, and none if the object
// does not exist.
func TestEventsAreTransitions(t *testing.T) {
	recorded(t, func(r *kubeevents.Recorder, s *server, _ *bytes.Buffer) {
		accepted := kubeevents.Event{Object: about("shop", "web"), Reason: "Accepted", Message: "valid"}
		for range 3 {
			r.Warn(rejected("shop", "web"))
			r.Warn(rejected("shop", "gone"))
			r.Clear(kubeevents.Event{Object: about("shop", "fine"), Reason: "Accepted"})
		}
		for range 3 {
			r.Clear(accepted)
		}
		r.Warn(rejected("shop", "web"))
		r.Forget(about("shop", "web"))
		r.Clear(accepted)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := fmt.Sprint(s.has()), "[shop/web Warning Rejected x2 shop/web Normal Accepted x1]"; got != want {
			t.Errorf("Events: %s, want %s", got, want)
		}
	})
}

// Without the right one line says so, and few requests are made. Once the right is given,
// later Events are written.
func TestMissingRightIsLoggedOnce(t *testing.T) {
	recorded(t, func(r *kubeevents.Recorder, s *server, log *bytes.Buffer) {
		s.set(true, false)
		for i := range 100 {
			r.Warn(rejected(fmt.Sprintf("ns-%d", i%2), fmt.Sprintf("web-%d", i)))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "affects nothing else") || !strings.Contains(log.String(), "verbs: [create, patch]") {
			t.Errorf("the log is %q", log)
		}
		if s.requests > 4 {
			t.Errorf("%d requests were made", s.requests)
		}
		s.set(false, false)
		time.Sleep(10 * time.Minute)
		r.Warn(rejected("ns-0", "later"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(s.has()); got != "[ns-0/later Warning Rejected x1]" {
			t.Errorf("Events: %s", got)
		}
	})
}

// While the API server is away, Events wait in order.
func TestEventsWaitForTheAPIServer(t *testing.T) {
	recorded(t, func(r *kubeevents.Recorder, s *server, _ *bytes.Buffer) {
		s.set(false, true)
		r.Warn(rejected("shop", "web"))
		r.Clear(kubeevents.Event{Object: about("shop", "web"), Reason: "Accepted"})
		time.Sleep(7 * time.Second)
		s.set(false, false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := fmt.Sprint(s.has()), "[shop/web Warning Rejected x1 shop/web Normal Accepted x1]"; got != want {
			t.Errorf("Events: %s, want %s", got, want)
		}
	})
}
