package servicecenter_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

func TestWhatIsRegisteredFromGoIsFound(t *testing.T) {
	t.Parallel()
	s := servicecenter.Start(t, servicecenter.Config{Prompt: true})
	id := s.Register(servicecenter.Service{App: "shop", Name: "cart", Environment: "production"})
	instance := s.RegisterInstance(id, servicecenter.Instance{HostName: "h", Endpoints: []string{"rest://10.0.0.1:80"}})

	var listed struct{ Services []servicecenter.Service }
	get(t, s, "/v4/default/registry/microservices", &listed)
	if len(listed.Services) != 1 || listed.Services[0].ID != id {
		t.Fatalf("listed %+v, want only %s", listed.Services, id)
	}
	type answer struct {
		Services struct {
			NotModified []int
			Updated     []struct {
				Rev       string
				Instances []servicecenter.Instance
			}
		}
	}
	var first, second answer
	post(t, s, "/v4/default/registry/instances/action?type=query",
		`{"services":[{"service":{"environment":"production","appId":"shop","serviceName":"cart"},"rev":""}]}`, &first)
	if len(first.Services.Updated) != 1 || len(first.Services.Updated[0].Instances) != 1 || first.Services.Updated[0].Instances[0].ID != instance {
		t.Fatalf("found %+v, want %s", first, instance)
	}
	post(t, s, "/v4/default/registry/instances/action?type=query",
		`{"services":[{"service":{"environment":"production","appId":"shop","serviceName":"cart"},"rev":"`+first.Services.Updated[0].Rev+`"}]}`, &second)
	if len(second.Services.NotModified) != 1 || len(second.Services.Updated) != 0 {
		t.Errorf("the second time found %+v, want it not modified", second)
	}
	if n := s.Requests(servicecenter.BatchFind); n != 2 {
		t.Errorf("%d batch finds were counted, want 2", n)
	}
}

func get(t *testing.T, s *servicecenter.Server, path string, into any) {
	t.Helper()
	do(t, s, http.MethodGet, path, "", into)
}

func post(t *testing.T, s *servicecenter.Server, path, body string, into any) {
	t.Helper()
	do(t, s, http.MethodPost, path, body, into)
}

// do makes a request that must succeed.
func do(t *testing.T, s *servicecenter.Server, method, path, body string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	answer, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s %v", method, path, w.Status, answer, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatal(err)
	}
}

// TestManyMayUseItUntilItCloses is for the race detector.
func TestManyMayUseItUntilItCloses(t *testing.T) {
	t.Parallel()
	s := servicecenter.New(servicecenter.Config{})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	var users sync.WaitGroup
	transport := &http.Transport{}
	for n := range 4 {
		users.Go(func() {
			for i := 0; ; i++ {
				id := s.Register(servicecenter.Service{App: "shop", Name: fmt.Sprintf("s%d", n)})
				s.RegisterInstance(id, servicecenter.Instance{ID: strconv.Itoa(i), HostName: "h"})
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/v4/default/govern/microservices?options=dependencies", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				w, err := transport.RoundTrip(r)
				if err != nil {
					return // it was closed
				}
				_, _ = io.Copy(io.Discard, w.Body)
				_ = w.Body.Close()
				if i == 20 {
					s.Close()
				}
			}
		})
	}
	users.Wait()
	transport.CloseIdleConnections()
	s.Close()
}
