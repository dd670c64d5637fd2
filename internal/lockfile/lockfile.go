// Package lockfile locks a folder for one process, by a file in the folder. The file stays,
// and contains the id of the process that took the lock last.
//
// The lock is per open file, so it also excludes other goroutines of the same process.
package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

var errHeld = errors.New("another process has the lock")

// HeldError reports that another process has the lock.
type HeldError struct {
	Path   string
	Holder string // the process id, or "unknown"
}

// Error implements [error].
func (e *HeldError) Error() string {
	text := fmt.Sprintf("process %s has locked %s: wait until it ends, or stop it", e.Holder, e.Path)
	if Outlives {
		text += "; if it is long gone, remove the file"
	}
	return text
}

// Retry is the time between two attempts to take a lock that another process has.
const Retry = 20 * time.Millisecond

// Take locks a file and writes the process id into it. It fails with a [HeldError] if
// another process has the lock.
func Take(path string) (*os.File, error) {
	f, holder, err := take(path)
	if err == nil {
		// The file may have been removed since it was opened.
		var ours, there os.FileInfo
		if ours, err = f.Stat(); err == nil {
			if there, err = os.Lstat(path); err == nil && os.SameFile(ours, there) {
				// An id that cannot be written, as on a full disk, leaves the lock valid.
				_ = f.Truncate(0)
				_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
				return f, nil
			}
		}
		_ = f.Close()
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = errHeld
		}
	}
	if !errors.Is(err, errHeld) {
		return nil, err
	}
	if _, err := strconv.Atoi(holder); err != nil {
		holder = "unknown"
	}
	return nil, &HeldError{Path: path, Holder: holder}
}

// Await takes a lock like [Take], and waits for at most a time while another process has it.
func Await(path string, limit time.Duration) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(Retry) {
		f, err := Take(path)
		if _, held := errors.AsType[*HeldError](err); !held || time.Since(began) >= limit {
			return f, err
		}
	}
}
