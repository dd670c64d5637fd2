package dirwatch

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches the folders of the last look.
type Watcher struct {
	notify *fsnotify.Watcher     // nil if the system provides none
	fed    <-chan fsnotify.Event // in place of the system's
	log    *slog.Logger

	dirs  map[string]bool // watched since the last look
	fresh map[string]bool // named in this look

	denied int    // new folders in this look that cannot be watched
	first  string // the first of them
	why    error
}

// New returns a watcher of no folder. If the system provides none, it watches nothing, and
// logs that.
func New(log *slog.Logger) *Watcher {
	w := Fed(nil)
	w.log = log
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.notify = nil
		log.Warn("folders cannot be watched, changes are found more slowly", "err", explain(err))
	}
	return w
}

// Fed returns a watcher with events from a channel instead of the system; a nil channel has
// none. It is for tests with their own clock.
func Fed(events <-chan fsnotify.Event) *Watcher {
	return &Watcher{fed: events, dirs: map[string]bool{}, fresh: map[string]bool{}}
}

// Add watches a folder, until a look that does not name it.
func (w *Watcher) Add(dir string) {
	if w.notify == nil || w.fresh[dir] {
		return
	}
	w.fresh[dir] = true
	if err := w.notify.Add(dir); err != nil && !w.dirs[dir] {
		if w.denied++; w.denied == 1 {
			w.first, w.why = dir, err
		}
	}
}

// Sweep ends a look: it drops the watches of folders that were not added since
// the one before.
func (w *Watcher) Sweep() {
	for dir := range w.dirs {
		if !w.fresh[dir] {
			_ = w.notify.Remove(dir) // the watch may already be gone
		}
	}
	w.dirs, w.fresh = w.fresh, map[string]bool{}
	if w.denied > 0 { // one log line for possibly thousands of folders
		w.log.Warn("folders cannot be watched, changes in them are found more slowly",
			"count", w.denied, "folder", w.first, "err", explain(w.why))
		w.denied = 0
	}
}

// Events returns the channel with an event for each change in a watched folder.
func (w *Watcher) Events() <-chan fsnotify.Event {
	if w.notify == nil {
		return w.fed
	}
	return w.notify.Events
}

// Lost returns the channel with an error when events may have been lost.
func (w *Watcher) Lost() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}

// Close ends all watches.
func (w *Watcher) Close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}

// explain adds the fix for a limit of the system to its error, which names only disks and
// files.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: all watches of this user are in use; raise the sysctl fs.inotify.max_user_watches", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: too many files or watchers are in use; raise ulimit -n, or the sysctl fs.inotify.max_user_instances", err)
	default:
		return err
	}
}
