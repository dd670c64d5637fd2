package envoy_test

import (
	"os"
	"path/filepath"
	"testing"
)

// newFolder makes a folder in which nothing is but a service that stays, so
// that no change empties it.
func newFolder(t testing.TB) *folder {
	t.Helper()
	f := &folder{path: filepath.Join(t.TempDir(), "registry"), files: map[string][]object{}}
	if err := os.Mkdir(f.path, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(t, "stays", static("stays.example.com", endpoint{Address: "192.0.2.1"}))
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
	if err := os.Remove(f.at(name)); err != nil {
		t.Fatal(err)
	}
	delete(f.files, name)
}

func (f *folder) at(name string) string { return filepath.Join(f.path, name+".yaml") }
