//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe in place of a file is a problem of its pair alone, and nothing waits for its other end.
func TestAPipeIsNotOpened(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	other := ca.issue(till)
	other.write(t, filepath.Join(dir, "till"), mounted)
	ca.issue(cart).write(t, filepath.Join(dir, "cart"), mounted)
	path := filepath.Join(dir, "cart", "tls.key")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	i, log := open(t, dir)
	mustSay(t, i, log, path+": it is not a regular file")
	mustServe(t, i, till, other)
}
