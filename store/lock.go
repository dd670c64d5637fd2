package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/lockfile"
)

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
	if lockfile.Outlives {
		text += fmt.Sprintf(" (if it is long gone, remove %s)", folder(e.Dir).path(lockName))
	}
	return text
}

// lock takes the folder for this process and writes its process id into the lock. A
// process that holds the lock may be ending, so lock waits for it.
func (d folder) lock(patience time.Duration, log *slog.Logger) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(lockfile.Retry) {
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
	f, err := lockfile.Take(d.path(lockName))
	if held, ok := errors.AsType[*lockfile.HeldError](err); ok {
		return nil, &InUseError{Dir: string(d), Holder: held.Holder}
	}
	return f, err
}
