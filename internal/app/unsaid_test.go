package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// What was written into the cluster that it was read from, since nobody said that it is
// the same, is deleted there once somebody does. What others say stays.
func TestWhatWasWrittenBackIsDeleted(t *testing.T) {
	t.Parallel()
	api := kubeapi.New()
	t.Cleanup(api.Close)
	behind, err := url.Parse(api.URL())
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(behind)
	pass.FlushInterval = -1 // watches
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/namespaces/kube-system" {
			_, _ = w.Write([]byte(`{"kind": "Namespace", "metadata": {"uid": "u-1"}}`))
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	c := load(t, map[string]string{"here": front.URL}, "sources: [{name: files, file: {path: .}}, {name: east, file: {path: .}}]\n"+
		"outputs: {istio: {kubeconfig: here, debounce: {quiet: 0s}, leaderElection: {enabled: false}}}\nadmin: {listen: '127.0.0.1:0'}\n")
	east := &cluster{address: "https://east"}
	c.Sources[0].Settings, c.Sources[1].Settings = &lists{host: inFolder}, &reads{lists{host: inEast}, east}
	a := serveAtOnce(t, c)
	mustWrite(t, a, api, inEast, inFolder)
	east.says("u-1", nil)
	mustWrite(t, a, api, inFolder)
}

// serveAtOnce runs an application that takes at its word who does not say which cluster it is of.
func serveAtOnce(t *testing.T, c *config.Config) *App {
	t.Helper()
	a, err := New(t.Context(), c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range a.branches {
		b.patience = 0
	}
	run(t, a)
	return a
}

// mustWrite waits until there are the objects of just these services, and no other is wanted.
func mustWrite(t *testing.T, a *App, api *kubeapi.Server, hosts ...string) {
	t.Helper()
	until.NoError(t, 30*time.Second, 20*time.Millisecond, fmt.Sprintf("objects of %q", hosts), func() error {
		w := writersOf(t, a)
		if len(w) != 1 || w[0].Objects != len(hosts) || w[0].Pending > 0 {
			return fmt.Errorf("the writers are %+v", w)
		}
		for _, host := range hosts {
			if api.Get("networking.istio.io/v1/namespaces/shop/serviceentries/"+host) == nil {
				return fmt.Errorf("there is none of %s", host)
			}
		}
		return nil
	})
}
