package dirwatch

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// The bound of a whole machine is not for a test to use up.
func TestUsedUpWatchesAreExplained(t *testing.T) {
	err := explain(os.NewSyscallError("inotify_add_watch", syscall.ENOSPC))
	if !strings.Contains(err.Error(), "fs.inotify.max_user_watches") {
		t.Error(err)
	}
	if other := explain(syscall.ENOENT); other != syscall.ENOENT { //nolint:errorlint // it is to be the same
		t.Error(other)
	}
}
