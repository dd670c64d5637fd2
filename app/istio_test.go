package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// setUp writes two registries, a kubeconfig and a configuration that has
// only one of the registries written.
func setUp(t *testing.T, api *kubeapi.Server) *config.Config {
	t.Helper()
	dir := t.TempDir()
	entry := func(host string) string {
		return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: x, namespace: shop}\n"+
			"spec: {hosts: [%s], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.0.0.1}]}\n", host)
	}
	files := map[string]string{
		"one/x.yaml": entry("one.example"),
		"two/x.yaml": entry("two.example"),
		"kubeconfig": fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: t, cluster: {server: %q}}]\n"+
			"contexts: [{name: t, context: {cluster: t}}]\ncurrent-context: t\n", api.URL()),
		"isthmus.yaml": "sources:\n- {name: one, file: {path: one}}\n- {name: two, file: {path: two}}\noutputs:\n" +
			"  istio: {kubeconfig: kubeconfig, sources: [two], debounce: {quiet: 0s}, leaderElection: {enabled: false}}\n" +
			"admin: {listen: \"127.0.0.1:0\"}\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "isthmus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An Isthmus may write alone, without serving, and only some of its sources.
func TestOnlyTheNamedSourcesAreWritten(t *testing.T) {
	t.Parallel()
	api := kubeapi.New()
	t.Cleanup(api.Close)
	c := setUp(t, api)
	a, err := New(t.Context(), c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if addr := a.Addr("xds"); addr != nil {
		t.Errorf("it serves xDS at %s", addr)
	}
	run(t, a)
	shows(t, a, 1, 0)
	if writes := api.Writes(); len(writes) != 1 || writes[0] != "PATCH networking.istio.io/v1/namespaces/shop/serviceentries/two.example" {
		t.Errorf("writes: %v", writes)
	}
}

// run runs an application until the test ends.
func run(t *testing.T, a *App) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Defect R: nobody could see what the earlier bridge did. Here health, metrics,
// the state of what is read and of what is written, and a rehearsal tell.
func TestDefectREverythingCanBeSeen(t *testing.T) {
	t.Parallel()
	api := kubeapi.New()
	t.Cleanup(api.Close)
	a, err := New(t.Context(), setUp(t, api), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run(t, a)
	for path, want := range map[string][]string{
		"/livez": {"ok"}, "/readyz": {"ok"},
		"/metrics": {
			`isthmus_source_up{kind="file",source="one"} 1`, "isthmus_istio_objects 1", "isthmus_istio_pending 0",
			`isthmus_istio_writes_total{verb="create"} 1`, "isthmus_istio_leader 1",
		},
		"/api/v1/sources": {`"state": "live"`, `"lastListing"`},
		"/api/v1/writers": {`"state": "writing"`, `"objects": 1`, `"lastWrite"`},
	} {
		until.NoError(t, 5*time.Millisecond, path, func() error {
			text := look(t, a, path)
			lacks := slices.DeleteFunc(slices.Clone(want), func(part string) bool { return strings.Contains(text, part) })
			if len(lacks) > 0 {
				return fmt.Errorf("it does not say %q:\n%s", lacks, text)
			}
			return nil
		})
	}
}

// A listing that the API server does not answer is named by the writer, by readiness and by
// the status, and since when it is waited for.
func TestMissingListingIsShown(t *testing.T) {
	t.Parallel()
	api := kubeapi.New()
	t.Cleanup(api.Close)
	listing := make(chan struct{})
	api.Before(func(_, path string) {
		if strings.HasSuffix(path, "/serviceentries") {
			<-listing
		}
	})
	a, err := New(t.Context(), setUp(t, api), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run(t, a)
	t.Cleanup(func() { close(listing) }) // before the application is stopped
	const missing = "not known yet: the API server's listing of serviceentries"
	for path, want := range map[string]*regexp.Regexp{
		"/api/v1/writers": regexp.MustCompile(`"state": "waiting",\s+"reason": "` + missing + `",\s+"age": "[\d.]+m?s"`),
		"/readyz?verbose": regexp.MustCompile(`warning: output istio: nothing is written yet: ` + missing + `, for [\d.]+m?s; next: `),
		"/api/v1/status":  regexp.MustCompile(missing),
	} {
		until.NoError(t, 5*time.Millisecond, path, func() error {
			if text := look(t, a, path); !want.MatchString(text) {
				return fmt.Errorf("it does not say %s:\n%s", want, text)
			}
			return nil
		})
	}
}

func look(t *testing.T, a *App, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.AdminAddr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writersOf(t *testing.T, a *App) (list []output.Writer) {
	t.Helper()
	if err := json.Unmarshal([]byte(look(t, a, "/api/v1/writers")), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// A rehearsal tells what a run would do, and does not do it.
func TestRehearsalWritesNothing(t *testing.T) {
	t.Parallel()
	api := kubeapi.New()
	defer api.Close()
	r, err := Rehearse(t.Context(), setUp(t, api), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Actions) != 1 || r.Actions[0].Verb != "create" || r.Actions[0].Object != "ServiceEntry shop/two.example" || len(r.Sources) != 2 {
		t.Errorf("rehearsal: %+v", r)
	}
	if writes := api.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", writes)
	}
}
