package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// region is a file registry of so many services with two endpoints each, and
// an API server it is written to.
type region struct {
	api    *kubeapi.Server
	dir    string
	config *config.Config
}

// newRegion configures one, with more of a configuration.
func newRegion(t *testing.T, hold, more string) *region {
	t.Helper()
	r := &region{api: kubeapi.New(), dir: t.TempDir()}
	t.Cleanup(r.api.Close)
	r.write(t, "kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: t, cluster: {server: %q}}]\n"+
		"contexts: [{name: t, context: {cluster: t}}]\ncurrent-context: t\n", r.api.URL()))
	r.write(t, "isthmus.yaml", "sources:\n- {name: files, file: {path: files}, hold: "+hold+"}\noutputs:\n"+
		"  istio: {kubeconfig: kubeconfig, debounce: {quiet: 0s}, leaderElection: {enabled: false}, qps: 1000, burst: 1000}\n"+
		"admin: {listen: \"127.0.0.1:0\"}\n"+more)
	r.services(t, 20)
	c, err := config.Load(filepath.Join(r.dir, "isthmus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.config = c
	return r
}

func (r *region) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// services has the registry list just the first n services.
func (r *region) services(t *testing.T, n int) {
	t.Helper()
	for i := range 20 {
		name := fmt.Sprintf("files/s%02d.yaml", i)
		if i < n {
			r.write(t, name, fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s%d, namespace: shop}\n"+
				"spec: {hosts: [s%02d.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.0.%d.1}, {address: 10.0.%d.2}]}\n", i, i, i, i))
		} else if err := os.Remove(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// process runs an application until the returned function ends it.
func (r *region) process(t *testing.T) (a *App, end func()) {
	t.Helper()
	a, err := New(t.Context(), r.config, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return a, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// shows waits until the writer is at rest with so many objects, of which some
// are held since their source was listed, and returns it.
func shows(t *testing.T, a *App, objects, held int) output.Writer {
	t.Helper()
	var list []output.Writer
	until.NoError(t, 5*time.Millisecond, "the writer to be at rest", func() error {
		list = writersOf(t, a)
		if len(list) == 1 && list[0].State == output.WriterWriting && list[0].Objects == objects && list[0].Pending == 0 &&
			len(list[0].Held) == held && !slices.ContainsFunc(list[0].Held, func(h output.HeldObject) bool { return h.Age == "" }) {
			return nil
		}
		return fmt.Errorf("want %d objects, %d of them held; writers: %+v", objects, held, list)
	})
	return list[0]
}

// sourceHolds waits until the source itself holds so many records.
func sourceHolds(t *testing.T, a *App, records int) {
	t.Helper()
	until.NoError(t, 5*time.Millisecond, "the source to hold", func() error {
		if s := a.fleet.supervisors()[0].Status(); s.Held != records {
			return fmt.Errorf("%d records, but it is %+v", records, s)
		}
		return nil
	})
}

// becomes has one process write all services, and then leaves so many of them in
// the registry while there is no process.
func (r *region) becomes(t *testing.T, left int) {
	t.Helper()
	a, end := r.process(t)
	shows(t, a, 20, 0)
	end()
	r.services(t, left)
}

func (r *region) deletions() (n int) {
	for _, write := range r.api.Writes() {
		if strings.HasPrefix(write, http.MethodDelete) {
			n++
		}
	}
	return n
}

// A process without a folder starts just when the registry is nearly empty.
func TestRestartWithoutFolderBeforeANearlyEmptyRegistry(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "{for: 1h}", "")
	r.becomes(t, 1)
	a, end := r.process(t)
	defer end()
	w := shows(t, a, 20, 19)
	if h := w.Held[0]; h.Object != "ServiceEntry shop/s01.example" || h.Endpoints != 2 || h.Age == "" || !strings.Contains(h.Reason, "lacks 38 of the 40 endpoints") {
		t.Errorf("it is held so: %+v", h)
	}
	if text := look(t, a, "/metrics"); !strings.Contains(text, "isthmus_istio_held 19\n") {
		t.Error("no metric counts what is held")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.AdminAddr().String()+"/api/v1/sources/files/release", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	if n := r.deletions(); n > 0 {
		t.Errorf("%d objects were deleted", n)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("release: %v, %v", response, err)
	}
	_ = response.Body.Close()
	shows(t, a, 1, 0)
}

// The source, which would not list again by itself, is asked to.
func TestRestartWithoutFolderAppliesWhatLasts(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "{for: 1s}", "")
	r.becomes(t, 1)
	began := time.Now()
	a, end := r.process(t)
	defer end()
	shows(t, a, 1, 0)
	if took := time.Since(began); took < time.Second {
		t.Errorf("applied after %s", took)
	}
}

// What little was listed is no small loss while nearly everything is missing:
// the source itself holds that.
func TestWhatIsLeftOfARegistryIsHeldAsWell(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "{for: 1h}", "")
	r.becomes(t, 3)
	a, end := r.process(t)
	defer end()
	shows(t, a, 20, 17)
	r.services(t, 0)
	sourceHolds(t, a, 9)
	shows(t, a, 20, 17)
	if n := r.deletions(); n > 0 {
		t.Errorf("%d objects were deleted", n)
	}
}

// With a folder it is the source that holds, as it knows what there was.
func TestRestartWithFolderHoldsAtTheSource(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "{for: 1h}", "store: {dataDir: state}\n")
	r.becomes(t, 1)
	a, end := r.process(t)
	defer end()
	sourceHolds(t, a, 57)
	shows(t, a, 20, 0)
	if n := r.deletions(); n > 0 {
		t.Errorf("%d objects were deleted", n)
	}
}

// A rehearsal says what would be left, and why.
func TestRehearsalShowsWhatWouldBeHeld(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "{for: 1h}", "")
	r.becomes(t, 1)
	rehearsal, err := Rehearse(t.Context(), r.config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, action := range rehearsal.Actions {
		if action.Verb == "leave" && strings.Contains(action.Reason, "lacks 38 of the 40 endpoints") {
			held = append(held, action.Object)
		}
	}
	if len(rehearsal.Actions) != 20 || len(held) != 19 || slices.ContainsFunc(held, func(object string) bool { return strings.HasSuffix(object, "/s00.example") }) {
		t.Errorf("%d actions, held: %v", len(rehearsal.Actions), held)
	}
}
