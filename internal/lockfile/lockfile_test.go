package lockfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/lockfile"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

func TestALockExcludesOthersUntilItIsReleased(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockfile.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockfile.Await(path, 2*lockfile.Retry)
	held, ok := errors.AsType[*lockfile.HeldError](err)
	if !ok || held.Holder != strconv.Itoa(os.Getpid()) || held.Path != path {
		t.Fatalf("a lock that is held is taken again: %v", err)
	}
	taken := make(chan error, 1)
	go func() {
		second, err := lockfile.Await(path, until.Patience)
		if err == nil {
			lockfile.Release(second)
		}
		taken <- err
	}()
	lockfile.Release(first)
	if err := <-taken; err != nil {
		t.Errorf("a released lock is not taken: %v", err)
	}
}

// It is no lock that another process has, so waiting for it would be in vain.
func TestAFolderThatIsMissingIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := lockfile.Await(filepath.Join(t.TempDir(), "none", "lock"), until.Patience); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lock in a missing folder: %v", err)
	}
}
