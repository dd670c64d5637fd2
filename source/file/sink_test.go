package file_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// sink hands every listing to the test, which thereby paces the source.
type sink struct {
	listings chan model.Listing
	relist   chan time.Time
}

func (s sink) Replace(ctx context.Context, listing model.Listing) error {
	select {
	case s.listings <- listing:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s sink) Relist() <-chan time.Time { return s.relist }

func (s sink) Change(context.Context, model.Change) error {
	return errors.New("a file source lists, it does not report changes")
}

// run is a running source.
type run struct {
	t        *testing.T
	dir      string
	listings chan model.Listing
	relist   chan time.Time
	failed   chan error
	state    map[model.Ref]model.Record // what a supervisor would have stored
	cancel   context.CancelFunc
}

// start runs a source over dir and returns after its first listing.
func start(t *testing.T, dir string, config file.Config) *run {
	t.Helper()
	r := launch(t, dir, config)
	if l := r.next(); l.Places != nil {
		t.Fatalf("the first listing is of %v only", l.Places)
	}
	return r
}

func launch(t *testing.T, dir string, config file.Config) *run {
	t.Helper()
	return launchWith(t, dir, config, func() {})
}

// launchWith calls prepare on the goroutine of the source.
func launchWith(t *testing.T, dir string, config file.Config, prepare func()) *run {
	t.Helper()
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{
		t: t, dir: dir, listings: make(chan model.Listing), relist: make(chan time.Time), failed: make(chan error, 1),
		state: map[model.Ref]model.Record{}, cancel: cancel,
	}
	src := file.New(config, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		defer close(done)
		prepare()
		r.failed <- src.Run(ctx, sink{r.listings, r.relist})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// next returns the next listing, having applied it to the state.
func (r *run) next() model.Listing {
	r.t.Helper()
	select {
	case l := <-r.listings:
		if l.Observed.IsZero() || time.Since(l.Observed) < 0 {
			r.t.Errorf("observed at %v", l.Observed)
		}
		apply(r.state, l)
		return l
	case err := <-r.failed:
		r.t.Fatalf("source failed: %v", err)
	case <-time.After(until.Patience):
		r.t.Fatal("no listing came")
	}
	panic("unreachable")
}

// fail returns the error the source ends with.
func (r *run) fail() error {
	r.t.Helper()
	select {
	case l := <-r.listings:
		r.t.Fatalf("listed although it should have failed:\n%s", listing.Dump(l))
	case err := <-r.failed:
		return err
	case <-time.After(until.Patience):
		r.t.Fatal("source goes on")
	}
	panic("unreachable")
}

// apply does what a supervisor does with a listing.
func apply(state map[model.Ref]model.Record, l model.Listing) {
	keep := map[model.Ref]bool{}
	places := map[string]bool{}
	for _, rejection := range l.Rejected {
		if rejection.Ref != (model.Ref{}) {
			keep[rejection.Ref] = true
		} else {
			places[rejection.Place] = true
		}
	}
	for ref, record := range state {
		in := l.Places == nil || slices.Contains(l.Places, record.Place)
		if in && !keep[ref] && !keep[record.Owner] && !places[record.Place] {
			delete(state, ref)
		}
	}
	for _, object := range l.Objects {
		for ref, record := range state {
			if record.Owner == object.Record.Ref {
				delete(state, ref)
			}
		}
		state[object.Record.Ref] = object.Record
		for _, owned := range object.Owned {
			owned.Place = object.Record.Place // so that it goes with its owner
			state[owned.Ref] = owned
		}
	}
}

// write puts text into a file below the folder, at once.
func (r *run) write(name, text string) { write(r.t, r.dir, name, text) }

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *run) remove(name string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) rename(from, to string) { rename(r.t, r.dir, from, to) }

func rename(t testing.TB, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

func (r *run) link(target, name string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		r.t.Fatal(err)
	}
}

// stored checks which services and workloads a supervisor would hold.
func (r *run) stored(want ...string) {
	r.t.Helper()
	if got := r.services(); !slices.Equal(got, want) {
		r.t.Errorf("stored are %v, want %v", got, want)
	}
}

// services names the services and workloads that a supervisor would hold, with their places.
func (r *run) services() (names []string) {
	for ref, record := range r.state {
		if ref.Kind != model.KindEndpoint {
			names = append(names, fmt.Sprintf("%s@%s", ref.Name, record.Place))
		}
	}
	slices.Sort(names)
	return names
}

// entry is a minimal ServiceEntry document.
func entry(name, host string) string {
	return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s}
spec:
  hosts: [%s]
  ports: [{number: 80, name: http, protocol: http}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.1}]
`, name, host)
}
