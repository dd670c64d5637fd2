package file_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// follow starts a source over a folder with some files.
func follow(t *testing.T, files map[string]string) *run {
	t.Helper()
	return followAs(t, patient, files)
}

// followAs is follow with a configuration.
func followAs(t *testing.T, config func(path string) file.Config, files map[string]string) *run {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	return start(t, dir, config(dir))
}

// patient is a configuration that takes the writing of a file for one change. It is not
// patient with files that are gone.
func patient(path string) file.Config {
	return file.Config{Path: path}.Pace(150*time.Millisecond, 3*time.Second, 0, 0).Gone(time.Millisecond)
}

// unhurried is patient with a test that does one thing after the other, on a busy machine
// as well, and means it to be one change.
func unhurried(path string) file.Config {
	return file.Config{Path: path}.Pace(time.Second, 3*time.Second, 0, 0).Gone(time.Millisecond)
}

func (r *run) places(want ...string) {
	r.t.Helper()
	if l := r.next(); !slices.Equal(l.Places, want) || l.Places == nil && want != nil {
		r.t.Fatalf("listing of %v, want of %v:\n%s", l.Places, want, listing.Dump(l))
	}
}

func (r *run) full() {
	r.t.Helper()
	if l := r.next(); l.Places != nil {
		r.t.Fatalf("listing of %v, want a full one", l.Places)
	}
}

func TestOneFileAtATime(t *testing.T) {
	t.Parallel()
	r := follow(t, map[string]string{"a.yaml": entry("a", "a.example"), "sub/b.yaml": entry("b", "b.example")})
	r.stored("a@a.yaml", "b@sub/b.yaml")

	r.write("c.yaml", entry("c", "c.example"))
	r.places("c.yaml")
	r.stored("a@a.yaml", "b@sub/b.yaml", "c@c.yaml")

	r.write("sub/b.yaml", entry("b2", "b.example"))
	r.places("sub/b.yaml")
	r.stored("a@a.yaml", "b2@sub/b.yaml", "c@c.yaml")

	r.write("sub/.b.yaml.tmp", entry("b", "b.example")+entry("b3", "b3.example"))
	r.rename("sub/.b.yaml.tmp", "sub/b.yaml")
	r.places("sub/b.yaml")
	r.stored("a@a.yaml", "b3@sub/b.yaml", "b@sub/b.yaml", "c@c.yaml")

	r.remove("a.yaml")
	r.places("a.yaml")
	r.stored("b3@sub/b.yaml", "b@sub/b.yaml", "c@c.yaml")
}

func TestWhatChangesNothingIsNotListed(t *testing.T) {
	t.Parallel()
	r := follow(t, map[string]string{"a.yaml": entry("a", "a.example")})
	r.write("a.yaml", entry("a", "a.example"))
	r.write("README.md", "hello")
	r.write(".a.yaml.swp", "hello")
	r.write("new.yaml", "")
	r.write("comment.yaml", "# nothing yet\n")
	if err := os.Chtimes(filepath.Join(r.dir, "a.yaml"), time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.write("z.yaml", entry("z", "z.example"))
	l := r.next()
	for len(l.Objects) == 0 || l.Objects[len(l.Objects)-1].Record.Name != "z" {
		t.Errorf("listed for nothing:\n%s", listing.Dump(l))
		l = r.next()
	}
	r.stored("a@a.yaml", "z@z.yaml")
}

// Moving an object is one listing of both places, whichever way it is done.
func TestMoveIsOneStep(t *testing.T) {
	t.Parallel()
	r := followAs(t, unhurried, map[string]string{
		"a.yaml": entry("a", "a.example") + entry("moving", "m.example"), "b.yaml": entry("b", "b.example"),
	})
	r.write("b.yaml", entry("b", "b.example")+entry("moving", "m.example"))
	r.write("a.yaml", entry("a", "a.example"))
	r.places("a.yaml", "b.yaml")
	r.stored("a@a.yaml", "b@b.yaml", "moving@b.yaml")

	r.rename("b.yaml", "c.yaml")
	r.places("b.yaml", "c.yaml")
	r.stored("a@a.yaml", "b@c.yaml", "moving@c.yaml")
}

// The place of the loser is listed together with the winner's.
func TestLoserTakesOver(t *testing.T) {
	t.Parallel()
	r := follow(t, map[string]string{"a.yaml": entry("x", "a.example")})
	r.write("b.yaml", entry("x", "b.example"))
	r.places("a.yaml", "b.yaml")
	r.stored("x@a.yaml")

	r.write("a.yaml", strings.Replace(entry("x", "a.example"), "resolution", "resolutions", 1))
	l := r.next()
	if len(l.Objects) != 0 || len(l.Rejected) != 2 {
		t.Errorf("a rejected winner lets the loser in:\n%s", listing.Dump(l))
	}
	r.stored("x@a.yaml")

	r.write("a.yaml", "a: [") // nobody can tell any more what it was
	if l := r.next(); len(l.Objects) != 0 || len(l.Rejected) != 2 {
		t.Errorf("a broken winner lets the loser in:\n%s", listing.Dump(l))
	}
	r.stored("x@a.yaml")

	r.remove("a.yaml")
	r.places("a.yaml", "b.yaml")
	r.stored("x@b.yaml")
}

func TestBrokenThenFixed(t *testing.T) {
	t.Parallel()
	r := follow(t, map[string]string{"a.yaml": entry("a", "a.example") + entry("b", "b.example")})
	r.write("a.yaml", entry("a", "a.example")+"---\nkind: [\n")
	l := r.next()
	if len(l.Rejected) != 1 || l.Rejected[0].Where != "a.yaml:11" {
		t.Errorf("rejected:\n%s", listing.Dump(l))
	}
	r.stored("a@a.yaml", "b@a.yaml")

	r.write("a.yaml", entry("a", "a.example"))
	r.places("a.yaml")
	r.stored("a@a.yaml")
}

// Several files gone at once are looked at twice, and reported as a whole.
func TestSeveralGone(t *testing.T) {
	t.Parallel()
	r := followAs(t, unhurried, map[string]string{
		"a.yaml": entry("a", "a.example"), "sub/b.yaml": entry("b", "b.example"),
		"sub/deep/c.yaml": entry("c", "c.example"),
	})
	r.remove("sub")
	r.full()
	r.stored("a@a.yaml")

	r.write("sub/deep/d.yaml", entry("d", "d.example"))
	r.full()
	r.write("sub/deep/d.yaml", entry("d2", "d.example"))
	r.places("sub/deep/d.yaml")
	r.stored("a@a.yaml", "d2@sub/deep/d.yaml")

	r.rename("sub/deep", "sub/other")
	r.full()
	r.write("sub/other/d.yaml", entry("d3", "d.example"))
	// The events of a folder that moves may come in two parts, and then the
	// folder is read once more as a whole, the write with it.
	if l := r.next(); l.Places != nil && !slices.Equal(l.Places, []string{"sub/other/d.yaml"}) {
		t.Errorf("got\n%s", listing.Dump(l))
	}
	r.stored("a@a.yaml", "d3@sub/other/d.yaml")
}

// A file that is truncated first and written later is never seen as empty.
func TestTruncatedThenWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.yaml", entry("a", "a.example"))
	write(t, dir, "b.yaml", entry("b", "b.example"))
	r := start(t, dir, file.Config{Path: dir}.Pace(150*time.Millisecond, 3*time.Second, time.Minute, 0))
	r.write("a.yaml", "")
	r.write("b.yaml", entry("b2", "b.example"))
	r.places("b.yaml")
	r.stored("a@a.yaml", "b2@b.yaml")
	r.write("a.yaml", entry("a2", "a.example"))
	r.places("a.yaml")
	r.stored("a2@a.yaml", "b2@b.yaml")
}

func TestEmptyForGood(t *testing.T) {
	t.Parallel()
	r := follow(t, map[string]string{"a.yaml": entry("a", "a.example")})
	r.write("a.yaml", "")
	r.places("a.yaml")
	r.stored()
}

// Right after a start nobody knows what an empty file held a moment ago.
func TestEmptyAtFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.yaml", "")
	r := launch(t, dir, file.Config{Path: dir})
	if l := r.next(); len(l.Rejected) != 1 || l.Rejected[0].Place != "a.yaml" {
		t.Errorf("first listing:\n%s", listing.Dump(l))
	}
	if l := r.next(); len(l.Rejected) != 0 || !slices.Equal(l.Places, []string{"a.yaml"}) {
		t.Errorf("second listing:\n%s", listing.Dump(l))
	}
}

// What no event tells of is found by reading everything again, and nothing is
// listed where nothing changed.
func TestRescan(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, "elsewhere", entry("a", "a.example"))
	if err := os.Link(filepath.Join(outside, "elsewhere"), filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir, file.Config{Path: dir}.Pace(0, 0, 0, 20*time.Millisecond))
	for _, name := range []string{"b", "c", "d"} {
		write(t, outside, "elsewhere", entry(name, "a.example"))
		r.full()
		r.stored(name + "@a.yaml")
	}
}
