package file

import (
	"log/slog"

	"github.com/fsnotify/fsnotify"
)

// watcher watches the folders of the last walk. Without it, or where it is
// denied a folder, changes are still found, but only by the next reading of
// everything; so that is no error.
type watcher struct {
	notify *fsnotify.Watcher     // nil if the system gives none
	dirs   map[string]bool       // watched since the last walk
	fresh  map[string]bool       // asked for in this walk
	fed    <-chan fsnotify.Event // in place of the system's; only in tests
	log    *slog.Logger
}

func newWatcher(log *slog.Logger, without bool, fed <-chan fsnotify.Event) *watcher {
	w := &watcher{log: log, dirs: map[string]bool{}, fresh: map[string]bool{}, fed: fed}
	if without {
		return w
	}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.notify = nil
		log.Warn("folders cannot be watched, changes are found more slowly", "err", err)
	}
	return w
}

// add watches a folder. It is asked for again in every walk: a folder that was
// replaced by another of the same name needs a new watch.
func (w *watcher) add(dir string) {
	if w.notify == nil || w.fresh[dir] {
		return
	}
	w.fresh[dir] = true
	if err := w.notify.Add(dir); err != nil && !w.dirs[dir] {
		w.log.Warn("a folder cannot be watched, changes in it are found more slowly", "folder", dir, "err", err)
	}
}

// walked drops the watches that the walk just done did not ask for.
func (w *watcher) walked() {
	for dir := range w.dirs {
		if !w.fresh[dir] {
			_ = w.notify.Remove(dir) // it may be gone by itself
		}
	}
	w.dirs, w.fresh = w.fresh, map[string]bool{}
}

func (w *watcher) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return w.fed
	}
	return w.notify.Events
}

func (w *watcher) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}
