package file_test

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// Links lead nowhere but below the root: not to a folder beside it, and not to the whole
// disk. They are rejected by name, and what is stored of what they led to stays.
func TestLinksStayInside(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, "team/x.yaml", entry("x", "x.example"))
	write(t, outside, "y.yaml", entry("why", "y.example"))
	r := &run{t: t, dir: dir}
	r.write("a.yaml", entry("a", "a.example"))
	r.write("sub/b.yaml", entry("b", "b.example"))
	r.link("/", "disk")
	r.link(filepath.Join(outside, "team"), "team")
	r.link(filepath.Join(outside, "y.yaml"), "y.yaml")
	r.link(filepath.Join(dir, "sub", "b.yaml"), "absolute.yaml")
	stored := []model.Record{
		service("x", "team/x.yaml"), service("gone", "gone.yaml"),
	}
	watched := inotifyWatches(t)
	r = launch(t, dir, patient(dir).With(source.Env{Stored: func() iter.Seq[model.Record] { return slices.Values(stored) }}))
	l := r.next()
	var places []string
	for _, f := range l.Rejected {
		places = append(places, f.Place)
		if f.Place != "team/x.yaml" && !strings.Contains(f.Reason, "it is a symbolic link to a file outside of the folder") {
			t.Errorf("rejected is %+v", f)
		}
	}
	slices.Sort(places)
	if want := []string{"disk", "team", "team/x.yaml", "y.yaml"}; !slices.Equal(places, want) || len(l.Objects) != 2 {
		t.Errorf("rejected are %q, want %q; listed:\n%s", places, want, listing.Dump(l))
	}
	r.stored("a@a.yaml", "b@absolute.yaml")
	if n := inotifyWatches(t) - watched; n > 5000 { // of this test and those beside it
		t.Errorf("%d folders are watched", n)
	}
	r.remove("team")
	write(t, dir, "team/x.yaml", entry("x", "x.example"))
	r.becomes("a@a.yaml", "b@absolute.yaml", "x@team/x.yaml")
}

// Folders beyond the bound are not read, and it is said so. Those before it are.
func TestFoldersAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 30 {
		write(t, dir, fmt.Sprintf("d%02d/a.yaml", i), entry(fmt.Sprintf("s%02d", i), "a.example"))
	}
	stored := []model.Record{service("s29", "d29/a.yaml")}
	r := launch(t, dir, patient(dir).Folders(11).With(source.Env{Stored: func() iter.Seq[model.Record] { return slices.Values(stored) }}))
	l := r.next()
	if len(l.Objects) != 10 || len(l.Rejected) != 2 || !strings.Contains(l.Rejected[0].Reason, "more than the 11 folders that are read") {
		t.Errorf("listed:\n%s", listing.Dump(l))
	}
	if f := l.Rejected[1]; f.Place != "d29/a.yaml" { // it keeps what is stored of it
		t.Errorf("rejected is %+v", f)
	}
}

// The file that is stored keeps a name for as long as it describes the object, across
// restarts; without a store the first path has it.
func TestWhoHasANameKeepsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.yaml", entry("x", "a.example"))
	write(t, dir, "b.yaml", entry("x", "b.example"))
	start(t, dir, patient(dir)).stored("x@a.yaml")

	stored := []model.Record{service("x", "b.yaml")}
	again := patient(dir).With(source.Env{Stored: func() iter.Seq[model.Record] { return slices.Values(stored) }})
	r := start(t, dir, again)
	r.stored("x@b.yaml")
	r.write("a.yaml", entry("x", "other.example")+entry("new", "new.example"))
	r.becomes("new@a.yaml", "x@b.yaml")
	r.write("b.yaml", entry("x", "b.example")+entry("why", "y.example"))
	r.becomes("new@a.yaml", "why@b.yaml", "x@b.yaml")

	r.write("b.yaml", entry("why", "y.example"))
	r.becomes("new@a.yaml", "why@b.yaml", "x@a.yaml")
	r.write("b.yaml", entry("x", "b.example")+entry("z", "z.example"))
	r.becomes("new@a.yaml", "x@a.yaml", "z@b.yaml")

	write(t, dir, "b.yaml", "kind: [")
	r = launch(t, dir, again) // what is stored of a file that nobody can read stays its own
	if l := r.next(); len(l.Objects) != 1 || len(l.Rejected) != 2 {
		t.Errorf("listed:\n%s", listing.Dump(l))
	}
}

func service(name, place string) model.Record {
	return model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "files", Namespace: "default", Name: name}}, Place: place}
}

// becomes waits until the services that are stored, each with its place, are these.
func (r *run) becomes(want ...string) {
	r.t.Helper()
	for !slices.Equal(r.services(), want) {
		r.next()
	}
}

// inotifyWatches counts the folders that this process watches.
func inotifyWatches(t *testing.T) (n int) {
	t.Helper()
	infos, err := os.ReadDir("/proc/self/fdinfo")
	if err != nil {
		return 0 // not on this system
	}
	for _, info := range infos {
		text, _ := os.ReadFile("/proc/self/fdinfo/" + info.Name()) // it may be closed by now
		n += strings.Count(string(text), "inotify wd:")
	}
	return n
}
