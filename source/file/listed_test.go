package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/sourcetest"
)

// What every listed source has to pass, in a folder whose events a test passes on.
func TestListed(t *testing.T) {
	t.Parallel()
	sourcetest.RunListed(t, sourcetest.Listed{
		Open: func(tb testing.TB) sourcetest.Registry {
			tb.Helper()
			return newFolder(tb, make(chan fsnotify.Event, 100))
		},
		Faults: folderFaults, Lag: 10 * time.Second, Histories: 50,
	})
}

// The same with the events of the system, on its clock.
func TestListedAndWatched(t *testing.T) {
	t.Parallel()
	sourcetest.RunListed(t, sourcetest.Listed{
		Open: func(tb testing.TB) sourcetest.Registry {
			tb.Helper()
			return newFolder(tb, nil)
		},
		Faults: folderFaults, Lag: 100 * time.Millisecond, RealTime: true, Histories: 8,
	})
}

var folderFaults = []string{"the folder is gone", "a link stands for the folder that leads nowhere"}

// folder is a registry that is a folder, with a file for each service but the last two.
type folder struct {
	t      testing.TB
	root   string // that the source reads
	dir    string // where the files are
	lost   bool   // the events of what is set next
	texts  map[string]string
	events chan fsnotify.Event // that are passed on; nil if those of the system are
}

func newFolder(t testing.TB, events chan fsnotify.Event) *folder {
	t.Helper()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{t: t, root: filepath.Join(outside, "registry"), events: events, texts: map[string]string{}}
	f.dir = f.root
	if err := os.Mkdir(f.root, 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// Open implements [sourcetest.Registry].
func (f *folder) Open(env source.Env) source.Source {
	if f.events != nil {
		return file.New(file.Config{Path: f.root}.Pace(0, 0, 0, 2*time.Second).Fed(f.events), env.Log)
	}
	config := file.Config{Path: f.root}.Pace(2*time.Millisecond, 20*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond)
	return file.New(config.Gone(10*time.Millisecond), env.Log)
}

// Set implements [sourcetest.Registry].
func (f *folder) Set(services sourcetest.Services) {
	texts := map[string]string{}
	for host, service := range services.Sorted() {
		name := strings.TrimSuffix(host, ".example") + ".yaml"
		if name >= "c" {
			name = "shared.yaml"
		}
		texts[name] += document(host, service, name == "b.yaml")
	}
	var touched []string
	for name, text := range texts {
		if text != f.texts[name] {
			write(f.t, f.dir, ".draft", text)
			rename(f.t, f.dir, ".draft", name)
			touched = append(touched, name)
		}
	}
	for name := range f.texts {
		if texts[name] == "" {
			rename(f.t, "", filepath.Join(f.dir, name), filepath.Join(filepath.Dir(f.root), "gone"))
			touched = append(touched, name)
		}
	}
	f.texts = texts
	slices.Sort(touched)
	f.touch(touched...)
}

// touch passes events on, if those of the system are not. None are lost but those
// that are to be.
func (f *folder) touch(names ...string) {
	for _, name := range names {
		if f.events != nil && !f.lost && len(f.events) < cap(f.events) {
			f.events <- fsnotify.Event{Name: filepath.Join(f.root, name), Op: fsnotify.Write}
		}
	}
	f.lost = false
}

// Fail implements [sourcetest.Registry].
func (f *folder) Fail(way int) {
	f.dir = f.root + "-aside"
	rename(f.t, "", f.root, f.dir)
	if way == 1 {
		if err := os.Symlink("nowhere", f.root); err != nil {
			f.t.Fatal(err)
		}
	}
	f.touch("")
}

// Restore implements [sourcetest.Registry].
func (f *folder) Restore() {
	if err := os.Remove(f.root); err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	rename(f.t, "", f.dir, f.root)
	f.dir = f.root
	f.touch("")
}

// Disconnect implements [sourcetest.Disconnecter].
func (f *folder) Disconnect() { f.lost = true }

// Close implements [sourcetest.Registry].
func (f *folder) Close() {
	if err := os.RemoveAll(filepath.Dir(f.root)); err != nil {
		f.t.Error(err)
	}
}

// document is a manifest of a service. A bad one has a field that no manifest has, or
// is no text that anybody could read.
func document(host string, service sourcetest.Service, unreadable bool) string {
	if service.Bad && unreadable {
		return "---\nkind: [\n"
	}
	text := strings.Replace(entry(strings.TrimSuffix(host, ".example"), host), "  endpoints: [{address: 10.0.0.1}]\n", "  endpoints:\n", 1)
	for _, e := range service.Endpoints {
		text += fmt.Sprintf("  - {address: %s, ports: {http: %d}}\n", e.Addr(), e.Port())
	}
	if service.Bad {
		text = strings.Replace(text, "resolution", "resolutions", 1)
	}
	return text
}
