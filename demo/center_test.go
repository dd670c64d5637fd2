package demo

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/demo/servicecenter"
)

func TestCenterHasWhatIsWritten(t *testing.T) {
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
	for _, step := range [][]instance{{one, two}, {two}, {{"cart-2", "127.0.0.2", 9090}}, nil} {
		at, err := c.write(cart, step)
		if err != nil {
			t.Fatal(err)
		}
		if changed := c.changed(time.Now()); changed.Before(at) {
			t.Errorf("it changed at %s, before it was written to at %s", changed, at)
		}
		want := map[string][]string{}
		for _, i := range step {
			want[i.name] = registration(i).Endpoints
		}
		if diff := cmp.Diff(want, endpoints(t, c)); diff != "" {
			t.Errorf("endpoints (-want +got):\n%s", diff)
		}
	}
}

// endpoints reads those of the cart, past what the registry has in its cache.
func endpoints(t *testing.T, c *center) map[string][]string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		c.server.URL()+"/v4/default/registry/instances?appId=shop&serviceName=cart&env=production&noCache=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	w, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	var body struct{ Instances []servicecenter.Instance }
	if err := json.NewDecoder(w.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, i := range body.Instances {
		all[i.ID] = i.Endpoints
	}
	return all
}
