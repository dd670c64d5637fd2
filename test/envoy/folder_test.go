package envoy_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// folder is a source of an Isthmus: files, each with the objects last written
// to it. It may be used from any goroutine.
type folder struct {
	path string

	mu    sync.Mutex
	files map[string][]object
}

// objects are all that are written.
func (f *folder) objects() []object {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []object
	for _, file := range slices.Sorted(maps.Keys(f.files)) {
		all = append(all, f.files[file]...)
	}
	return all
}

// steady is how many endpoints stay in every folder. There are so many that
// whatever a test removes at once is less than half, which would be held.
const steady = 100

// newFolder makes a folder in which there is only a service that stays.
func newFolder(t testing.TB) *folder {
	t.Helper()
	f := &folder{path: filepath.Join(t.TempDir(), "registry"), files: map[string][]object{}}
	if err := os.Mkdir(f.path, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(t, "stays", static("stays.example.com", manyEndpoints(steady)...))
	return f
}

// static is a plain service.
func static(host string, endpoints ...endpoint) service {
	return service{Spec: serviceSpec{
		Hosts: []string{host}, Resolution: "STATIC", Endpoints: endpoints,
		Ports: []port{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}}
}

// write makes a file say objects and nothing else, in one step.
func (f *folder) write(t testing.TB, name string, objects ...object) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	draft := filepath.Join(f.path, ".draft")
	if err := os.WriteFile(draft, text(objects...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, f.at(name)); err != nil {
		t.Fatal(err)
	}
	f.files[name] = objects
}

// remove removes a file.
func (f *folder) remove(t testing.TB, name string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.Remove(f.at(name)); err != nil {
		t.Fatal(err)
	}
	delete(f.files, name)
}

func (f *folder) at(name string) string { return filepath.Join(f.path, name+".yaml") }
