package file_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// volume lays out a folder the way Kubernetes mounts a ConfigMap.
func (r *run) volume(revision string, files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		r.write(".."+revision+"/"+name, text)
		top, _, _ := strings.Cut(name, "/")
		if _, err := os.Lstat(filepath.Join(r.dir, top)); err != nil {
			r.link("..data/"+top, top)
		}
	}
	r.link(".."+revision, "..data_tmp")
	r.rename("..data_tmp", "..data")
}

func TestConfigMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &run{t: t, dir: dir}
	r.volume("1", map[string]string{"x.yaml": entry("x", "x.example"), "sub/w.yaml": entry("w", "w.example")})
	r = start(t, dir, patient(dir))
	r.stored("w@sub/w.yaml", "x@x.yaml")

	r.volume("2", map[string]string{"x.yaml": entry("x2", "x.example"), "sub/w.yaml": entry("w2", "w.example")})
	r.full()
	r.stored("w2@sub/w.yaml", "x2@x.yaml")

	r.remove("..1")
	r.volume("3", map[string]string{"x.yaml": entry("x3", "x.example"), "sub/z.yaml": entry("z", "z.example")})
	r.full()
	r.stored("w2@sub/w.yaml", "x3@x.yaml", "z@sub/z.yaml")
	r.places("sub/w.yaml") // which is not there any more
	r.stored("x3@x.yaml", "z@sub/z.yaml")
}

// A single file of such a volume, and a folder reached by a link that is swapped.
func TestRootBehindLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &run{t: t, dir: dir}
	r.volume("1", map[string]string{"x.yaml": entry("x", "x.example")})
	one := start(t, dir, patient(filepath.Join(dir, "x.yaml")))
	one.stored("x@x.yaml")

	r.write("trees/1/registry/a.yaml", entry("a", "a.example"))
	r.write("trees/2/registry/b.yaml", entry("b", "b.example"))
	r.link("trees/1", "current")
	tree := start(t, dir, patient(filepath.Join(dir, "current", "registry")))
	tree.stored("a@a.yaml")

	r.volume("2", map[string]string{"x.yaml": entry("x2", "x.example")})
	one.full()
	one.stored("x2@x.yaml")

	r.link("trees/2", "next")
	r.rename("next", "current")
	tree.full()
	tree.stored("a@a.yaml", "b@b.yaml")
	tree.places("a.yaml") // which is not there any more
	tree.stored("b@b.yaml")
	tree.write("trees/2/registry/b.yaml", entry("b2", "b.example"))
	tree.places("b.yaml")
	tree.stored("b2@b.yaml")
}

// A file with two names is read once, and a link in a circle is no trap.
func TestEachFileOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &run{t: t, dir: dir}
	r.write("z.yaml", entry("z", "z.example"))
	r.link("z.yaml", "a.yaml")
	r.link("..", "sub/up")
	r.link("loop", "loop")
	r = launch(t, dir, patient(dir))
	if l := r.next(); len(l.Objects) != 1 || len(l.Rejected) != 0 {
		t.Errorf("listed:\n%s", listing.Dump(l))
	}
	r.stored("z@a.yaml")
	r.write("z.yaml", entry("z2", "z.example"))
	r.full()
	r.stored("z2@a.yaml")
	r.remove("a.yaml")
	r.full()
	r.stored("z2@z.yaml")
}

// A file that is there but cannot be read is not one that is gone.
func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	r := followAs(t, unhurried, map[string]string{"a.yaml": entry("a", "a.example"), "b.yaml": entry("b", "b.example")})
	r.remove("a.yaml")
	r.link("nowhere", "a.yaml")
	l := r.next()
	if len(l.Rejected) != 1 || l.Rejected[0].Where != "a.yaml" {
		t.Errorf("listed:\n%s", listing.Dump(l))
	}
	r.stored("a@a.yaml", "b@b.yaml")
	r.write("nowhere", entry("a2", "a.example"))
	r.full()
	r.stored("a2@a.yaml", "b@b.yaml")

	r.remove("b.yaml")
	if err := syscall.Mkfifo(filepath.Join(r.dir, "b.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := r.next(); len(l.Rejected) != 1 {
		t.Errorf("listed:\n%s", listing.Dump(l))
	}
	r.stored("a2@a.yaml", "b@b.yaml")
}

// Files of which none can be read say nothing about the registry, at the start and later.
func TestNoFileCanBeRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "registry")
	files := &run{t: t, dir: dir}
	files.link("nowhere", "sub/b.yaml")
	files.link("nowhere", "a.yaml")
	const why = "none of its files can be read: a.yaml: cannot be read: no such file"
	if err := launch(t, dir, patient(dir)).fail(); !strings.Contains(err.Error(), dir+": "+why) {
		t.Errorf("error %v", err)
	}
	files.write("nowhere", entry("a", "a.example"))
	r := launch(t, dir, patient(dir))
	if l := r.next(); len(l.Objects) != 1 || len(l.Rejected) != 1 {
		t.Errorf("listed:\n%s", listing.Dump(l))
	}
	r.remove("nowhere")
	if err := r.fail(); !strings.Contains(err.Error(), why) {
		t.Errorf("error %v", err)
	}
	r.stored("a@a.yaml")
}

func TestRootMissing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "registry")
	if err := launch(t, dir, patient(dir)).fail(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// The folder going away ends the run with an error; a new run finds it again.
func TestRootIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "registry")
	write(t, dir, "a.yaml", entry("a", "a.example"))
	r := start(t, dir, unhurried(dir))
	r.rename("", "../elsewhere")
	if err := r.fail(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if err := launch(t, dir, unhurried(dir)).fail(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	write(t, dir, "b.yaml", entry("b", "b.example"))
	r = start(t, dir, unhurried(dir))
	r.stored("b@b.yaml")
	r.remove("")
	if err := r.fail(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestSingleFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "registry.txt", entry("a", "a.example"))
	write(t, dir, "other.yaml", entry("b", "b.example"))
	r := start(t, dir, patient(filepath.Join(dir, "registry.txt")))
	r.stored("a@registry.txt")
	r.write("other.yaml", entry("c", "c.example"))
	r.write(".tmp", entry("a2", "a.example"))
	r.rename(".tmp", "registry.txt")
	r.full()
	r.stored("a2@registry.txt")
	r.remove("registry.txt")
	if err := r.fail(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := new(file.Config).Validate(); err == nil || !strings.HasPrefix(err.Error(), "path: ") {
		t.Errorf("error %v", err)
	}
}
