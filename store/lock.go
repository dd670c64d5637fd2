package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

var errLocked = errors.New("another process has the lock")

// InUseError says that another process keeps its records in a folder.
type InUseError struct {
	Dir    string
	Holder string // its process id, as far as it is known
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by process %s: stop that process, or give each Isthmus a folder of its own "+
		"(if it is long gone, remove %s)", e.Dir, e.Holder, folder(e.Dir).path(lockName))
}

// lock takes the folder for this process and leaves its id in the lock.
func (d folder) lock() (*os.File, error) {
	f, err := takeLock(d.path(lockName))
	if errors.Is(err, errLocked) {
		text, _ := os.ReadFile(d.path(lockName))
		holder := strings.TrimSpace(string(text))
		if _, err := strconv.Atoi(holder); err != nil {
			holder = "unknown"
		}
		return nil, &InUseError{string(d), holder}
	}
	if err != nil {
		return nil, err
	}
	// That the id cannot be written, on a full disk, does not make it unlocked.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return f, nil
}
