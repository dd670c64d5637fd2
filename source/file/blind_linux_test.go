package file_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/listing"
)

// unprivileged makes the calling goroutine's thread one that permissions
// apply to, also when tests run as root. The thread ends with the goroutine.
func unprivileged() {
	runtime.LockOSThread()
	if os.Geteuid() == 0 {
		_ = syscall.Setfsuid(65534)
	}
}

// open returns a folder with two files that anybody may look into.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "a.yaml", entry("a", "a.example"))
	write(t, dir, "sub/b.yaml", entry("b", "b.example"))
	r := run{t: t, dir: dir}
	r.chmod("..", 0o755)
	r.chmod("", 0o755)
	return dir
}

func (r *run) chmod(name string, mode os.FileMode) {
	r.t.Helper()
	if err := os.Chmod(filepath.Join(r.dir, name), mode); err != nil {
		r.t.Fatal(err)
	}
}

// While a folder cannot be read, what is stored of it stays and all else goes on.
func TestFolderBecomesUnreadable(t *testing.T) {
	t.Parallel()
	dir := open(t)
	r := launchWith(t, dir, patient(dir), unprivileged)
	r.next()
	r.stored("a@a.yaml", "b@sub/b.yaml")
	r.chmod("sub", 0)
	l := r.next()
	if len(l.Rejected) != 2 || l.Rejected[0].Place != "sub" || l.Rejected[1].Place != "sub/b.yaml" {
		t.Errorf("listed:\n%s", listing.Dump(l))
	}
	r.stored("a@a.yaml", "b@sub/b.yaml")
	r.write("a.yaml", entry("a2", "a.example"))
	r.becomes("a2@a.yaml", "b@sub/b.yaml")

	r.remove("sub/b.yaml") // which has an event, perhaps a listing, but cannot be seen
	for _, name := range []string{"a3", "a4"} {
		r.write("a.yaml", entry(name, "a.example"))
		r.becomes(name+"@a.yaml", "b@sub/b.yaml")
	}
	r.write("sub/b.yaml", entry("b", "b.example"))
	r.chmod("sub", 0o755)
	l = r.next()
	for len(l.Rejected) > 0 { // listed before the folder could be read again
		l = r.next()
	}
	r.stored("a4@a.yaml", "b@sub/b.yaml")
}

// At a start nobody knows what such a folder held, so nothing is listed.
func TestFolderUnreadableAtFirst(t *testing.T) {
	t.Parallel()
	dir := open(t)
	(&run{t: t, dir: dir}).chmod("sub", 0)
	r := launchWith(t, dir, patient(dir), unprivileged)
	err := r.fail()
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "sub") {
		t.Errorf("error %v", err)
	}
	r.chmod("sub", 0o755) // so that it can be removed
}

// A file that changed and cannot be looked at, since a folder above the registry became
// unreadable, is not gone.
func TestFileThatCannotBeLookedAtIsNotGone(t *testing.T) {
	t.Parallel()
	dir := open(t)
	r := launchWith(t, dir, patient(dir), unprivileged)
	r.next()
	r.chmod("..", 0)
	defer r.chmod("..", 0o755)
	r.write("a.yaml", entry("a2", "a.example"))
	if err := r.fail(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v", err)
	}
	r.stored("a@a.yaml", "b@sub/b.yaml")
}
