package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/model"
	source "github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// Isthmus's own source reads the stand-in, first as a whole and then its changes.
func TestSourceFollowsTheServiceCenter(t *testing.T) {
	t.Parallel()
	c, err := newCenter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	cart, one, two := services[0], instance{"cart-1", "127.0.0.1", 8080}, instance{"cart-2", "127.0.0.2", 8080}
	if got, want := c.place(2, []instance{one}), "127.0.0.2:8080"; got != want {
		t.Errorf("the second is placed at %s, want %s", got, want)
	}
	write := func(all ...instance) func(*testing.T) {
		return func(t *testing.T) {
			at, err := c.write(cart, all)
			if err != nil {
				t.Fatal(err)
			}
			if changed := c.changed(time.Now()); changed.Before(at) {
				t.Errorf("it changed at %s, before it was written to at %s", changed, at)
			}
		}
	}
	ask := func(method, path, body string, want int) func(*testing.T) {
		return func(t *testing.T) {
			if got := ask(t, method, c.url+"/v4/default/registry/microservices/"+path, body); got != want {
				t.Errorf("%s %s is answered %d, want %d", method, path, got, want)
			}
		}
	}
	const third = `{"instance":{"instanceId":"cart-3","hostName":"cart-3","endpoints":["grpc://127.0.0.3:8080"]}}`
	read := mirror(t, c)
	for _, step := range []struct {
		name string
		act  func(*testing.T)
		want string
	}{
		{"two", write(one, two), "cart-1 127.0.0.1:[8080] cart-2 127.0.0.2:[8080]"},
		{"one", write(two), "cart-2 127.0.0.2:[8080]"},
		{"another port", write(instance{"cart-2", "127.0.0.2", 9090}), "cart-2 127.0.0.2:[9090]"},
		{"none", write(), ""},
		{"one again", write(one), "cart-1 127.0.0.1:[8080]"},
		{"a registration", ask(http.MethodPost, "cart/instances", third, http.StatusOK), "cart-1 127.0.0.1:[8080] cart-3 127.0.0.3:[8080]"},
		{"the same once more", ask(http.MethodPost, "cart/instances", third, http.StatusOK), "cart-1 127.0.0.1:[8080] cart-3 127.0.0.3:[8080]"},
		{"a removal", ask(http.MethodDelete, "cart/instances/cart-1", "", http.StatusOK), "cart-3 127.0.0.3:[8080]"},
		{"a second removal", ask(http.MethodDelete, "cart/instances/cart-1", "", http.StatusBadRequest), "cart-3 127.0.0.3:[8080]"},
		{"an unknown service", ask(http.MethodPost, "tart/instances", third, http.StatusBadRequest), "cart-3 127.0.0.3:[8080]"},
		{"no JSON", ask(http.MethodPost, "cart/instances", "{", http.StatusBadRequest), "cart-3 127.0.0.3:[8080]"},
	} {
		step.act(t)
		until.NoError(t, 20*time.Millisecond, step.name, func() error {
			if diff := cmp.Diff(step.want, read()); diff != "" {
				return fmt.Errorf("endpoints (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	c.down.Store(true)
	ask(http.MethodDelete, "cart/instances/cart-3", "", http.StatusServiceUnavailable)(t)
}

// mirror runs a source until the end of the test, and returns how its newest listing is read.
func mirror(t *testing.T, c *center) func() string {
	t.Helper()
	config := source.DefaultConfig()
	config.Addresses, config.Poll = []string{c.url}, 100*time.Millisecond
	s := &latest{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := source.New(config, source.Options{}).Run(ctx, s); ctx.Err() == nil {
			t.Errorf("the source ended: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.endpoints
	}
}

// latest is a sink that knows the endpoints of the newest listing.
type latest struct {
	mu        sync.Mutex
	endpoints string
}

func (s *latest) Replace(_ context.Context, l model.Listing) error {
	var all []string
	for _, o := range l.Objects {
		for _, r := range o.Owned {
			e := r.Spec.(model.Endpoint)
			ports := slices.Sorted(maps.Values(e.Ports.Map()))
			all = append(all, fmt.Sprintf("%s %s:%d", e.Labels.Map()["name"], e.Address, ports))
		}
	}
	slices.Sort(all)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = strings.Join(all, " ")
	return nil
}

func (*latest) Change(context.Context, model.Change) error { return nil }

func (*latest) Relist() <-chan time.Time { return nil }

// ask makes a request, and returns the status of the answer.
func ask(t *testing.T, method, url, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	w, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	if _, err := io.Copy(io.Discard, w.Body); err != nil {
		t.Fatal(err)
	}
	return w.StatusCode
}
