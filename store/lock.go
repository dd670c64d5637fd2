package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"time"
)

var errLocked = errors.New("another process has the lock")

// InUseError reports that another process keeps its records in a folder.
type InUseError struct {
	Dir    string
	Holder string        // the process id, if known
	Waited time.Duration // for the other process to end
}

func (e *InUseError) Error() string {
	text := fmt.Sprintf("%s is in use by process %s", e.Dir, e.Holder)
	if e.Waited > 0 {
		text += fmt.Sprintf(", which did not end within %s", e.Waited)
	}
	text += ": stop that process, or give each Isthmus a folder of its own"
	if lockOutlives {
		text += fmt.Sprintf(" (if it is long gone, remove %s)", folder(e.Dir).path(lockName))
	}
	return text
}

// lockRetry is the time between two attempts to take a lock held by another process.
const lockRetry = 20 * time.Millisecond

// lock takes the folder for this process and writes its process id into the lock. A
// process that holds the lock may be ending, so lock waits for it.
func (d folder) lock(patience time.Duration, log *slog.Logger) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(lockRetry) {
		f, err := d.tryLock()
		inUse, ok := errors.AsType[*InUseError](err)
		if !ok {
			return f, err
		}
		if inUse.Waited = time.Since(began); inUse.Waited >= patience {
			inUse.Waited = patience
			return nil, inUse
		}
		if log != nil {
			log.Info("the folder of the last known good is in use: waiting for that process to end", "folder", string(d), "process", inUse.Holder, "limit", patience.String())
			log = nil
		}
	}
}

func (d folder) tryLock() (*os.File, error) {
	f, holder, err := takeLock(d.path(lockName))
	if err == nil {
		// The file may have been removed since it was opened.
		var ours, there os.FileInfo
		if ours, err = f.Stat(); err == nil {
			if there, err = os.Lstat(d.path(lockName)); err == nil && os.SameFile(ours, there) {
				// An id that cannot be written, as on a full disk, leaves the lock valid.
				_ = f.Truncate(0)
				_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
				return f, nil
			}
		}
		_ = f.Close()
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = errLocked
		}
	}
	if !errors.Is(err, errLocked) {
		return nil, err
	}
	if _, err := strconv.Atoi(holder); err != nil {
		holder = "unknown"
	}
	return nil, &InUseError{Dir: string(d), Holder: holder}
}
