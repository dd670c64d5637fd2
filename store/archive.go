package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/lockfile"
)

// archive holds the saved files of a folder that this process has locked: the newest
// snapshot, and the journals after it. One goroutine owns it. Other goroutines write
// snapshots and sync journals; they do not change the archive.
type archive struct {
	folder folder
	files  files
	log    *slog.Logger
	listed func() map[string]time.Time // [DiskConfig].Listed; may be nil
	remade func()                      // [DiskConfig].Remade; may be nil

	lock     *os.File
	released sync.Once

	number       int         // of the newest file
	snapshot     os.FileInfo // the last one; nil if there is none
	snapBytes    int64       // in the last snapshot
	journals     int         // number of journals begun since the last snapshot
	journalBytes int64       // in these journals
	left         leftover
}

// release unlocks the folder.
func (a *archive) release() { a.released.Do(func() { lockfile.Release(a.lock) }) }

// mark returns the time mark of now for a file with synced bytes on disk.
func (a *archive) mark(synced int64) timeMark {
	var listed map[string]time.Time
	if a.listed != nil {
		listed = a.listed()
	}
	return newTimeMark(time.Now(), synced, listed)
}

// next returns the number of the next file.
func (a *archive) next() (int, error) {
	if a.number >= mostNumber {
		return 0, fmt.Errorf("%s has the highest possible number: move that file elsewhere and restart", a.folder.path(fmt.Sprintf("*-%08d", a.number)))
	}
	a.number++
	return a.number, nil
}

// superseded records a new snapshot, and removes the files before it.
func (a *archive) superseded(c compaction) error {
	if err := a.locked(); err != nil {
		return err // the files may belong to another process
	}
	a.snapshot = c.info
	a.snapBytes, a.journals, a.journalBytes, a.left = c.size, 0, 0, leftover{}
	a.folder.tidy(a.files)
	return nil
}

// forget clears the record of the saved files: the next snapshot replaces them all.
func (a *archive) forget() {
	a.snapshot, a.snapBytes, a.journals, a.journalBytes, a.left = nil, 0, 0, 0, leftover{}
}

var errNotOurs = errors.New("the folder was removed or replaced while this process ran")

// intact checks that the folder is still the opened one and contains the saved files.
func (a *archive) intact(journals []syncingJournal) error {
	if err := a.locked(); err != nil {
		return err
	}
	if err := a.hasSnapshot(); err != nil {
		return err
	}
	for _, j := range journals {
		if j.retired {
			continue // a new snapshot may have superseded the journal by now
		}
		if err := isStill(j.info, j.path); err != nil {
			return err
		}
	}
	return nil
}

// locked checks that the folder still contains the lock file of this process.
func (a *archive) locked() error {
	ours, err := a.lock.Stat()
	if err != nil {
		return err
	}
	return isStill(ours, a.folder.path(lockName))
}

// hasSnapshot checks that the folder still contains the saved snapshot. A file system
// gives the number of a removed file to the next one, which another process may have
// written. A snapshot has its name when it is whole, so its size and time tell them apart.
func (a *archive) hasSnapshot() error {
	if a.snapshot == nil {
		return nil
	}
	path := a.folder.path(a.snapshot.Name())
	if err := isStill(a.snapshot, path); err != nil {
		return err
	}
	now, err := os.Lstat(path)
	if err != nil || now.Size() != a.snapshot.Size() || !now.ModTime().Equal(a.snapshot.ModTime()) {
		return fmt.Errorf("%w: %s was written by another process", errNotOurs, path)
	}
	return nil
}

// isStill checks that a path still names the same file, which the process has open or
// whose content it compares.
func isStill(file os.FileInfo, path string) error {
	now, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotOurs, err)
	}
	if !os.SameFile(file, now) {
		return fmt.Errorf("%w: %s is another file", errNotOurs, path)
	}
	return nil
}

// remake creates and locks a removed or replaced folder again, unless another process has
// locked it. Files of another process in it are kept under other names.
func (a *archive) remake(reason error) error {
	if err := a.relock(); err != nil {
		return err
	}
	if a.remade != nil {
		a.remade()
	}
	list, _, err := a.folder.read()
	if err != nil {
		return err
	}
	if len(list) > 0 {
		a.number = max(a.number, list[len(list)-1].number)
	}
	var kept []string
	if a.snapshot == nil || a.hasSnapshot() != nil {
		kept, err = a.folder.keep(a.files, list, "replaced")
	}
	a.forget()
	a.log.Warn("the folder of the last known good was removed or replaced: it is created again, and everything is saved again. Find the process that removed it",
		"folder", string(a.folder), "reason", reason, "kept", kept, "err", err)
	return nil
}

// relock creates a missing folder, and replaces a lost lock.
func (a *archive) relock() error {
	if err := a.locked(); !errors.Is(err, errNotOurs) {
		return err
	}
	if err := a.folder.make(a.files); err != nil {
		return err
	}
	lock, err := a.folder.lock(0, nil)
	if err != nil {
		return err
	}
	lockfile.Release(a.lock)
	a.lock = lock
	return nil
}
