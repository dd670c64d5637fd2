package config

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pace is how fast a file is followed.
type pace struct {
	quiet time.Duration // without events, after which the file is taken to be written
	most  time.Duration // that a change waits although events keep coming
	again time.Duration // between looks without a sign, where events may be lost
}

var unhurried = pace{quiet: 200 * time.Millisecond, most: 2 * time.Second, again: 30 * time.Second}

// Watch calls changed whenever the file at path says something else than when
// it was last called, or can no longer be read, or can be read again; the first
// time at once. It returns when ctx ends.
//
// The folder of the file is watched rather than the file, so that an editor may
// rename another over it, and also that of the file it is a link to, which
// changes with it when Kubernetes swaps the links of a mounted volume. Without
// watches changes are found as well, but later.
func Watch(ctx context.Context, path string, log *slog.Logger, changed func()) {
	w := &watcher{path: path, pace: unhurried, dirs: map[string]bool{}}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		log.Warn("the configuration file cannot be watched, changes are found more slowly", "err", err)
		w.notify = nil
	}
	defer w.close()
	w.look()
	changed()
	w.follow(ctx, changed)
}

// watcher belongs to the goroutine of [Watch].
type watcher struct {
	path   string
	pace   pace
	notify *fsnotify.Watcher // nil if the system gives none
	dirs   map[string]bool   // watched

	text   []byte // when last looked at
	reason string // why it could not be read
}

// follow waits for: the end, an event in a folder, a lost event, the time to look.
func (w *watcher) follow(ctx context.Context, changed func()) {
	timer := time.NewTimer(w.pace.again)
	defer timer.Stop()
	var events <-chan fsnotify.Event
	var lost <-chan error
	if w.notify != nil {
		events, lost = w.notify.Events, w.notify.Errors
	}
	var first time.Time // of the events that wait; zero if none does
	note := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		timer.Reset(min(w.pace.quiet, max(0, first.Add(w.pace.most).Sub(now))))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			note()
		case <-lost:
			note() // an overflow; what it was about is seen by looking
		case <-timer.C:
			first = time.Time{}
			timer.Reset(w.pace.again)
			if w.look() {
				changed()
			}
		}
	}
}

// look reads the file and reports whether it is another than before. The
// folders come first: what changes after they are watched is an event, and what
// changed before is read.
func (w *watcher) look() bool {
	w.watch()
	text, err := os.ReadFile(w.path)
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	same := reason == w.reason && bytes.Equal(text, w.text)
	w.text, w.reason = text, reason
	return !same
}

// watch watches the folders that matter now. They are asked for every time: one
// that was replaced by another of the same name needs a new watch.
func (w *watcher) watch() {
	if w.notify == nil {
		return
	}
	wanted := map[string]bool{filepath.Dir(w.path): true}
	if target, err := filepath.EvalSymlinks(w.path); err == nil {
		wanted[filepath.Dir(target)] = true
	}
	for dir := range w.dirs {
		if !wanted[dir] {
			_ = w.notify.Remove(dir) // it may be gone by itself
		}
	}
	for dir := range wanted {
		_ = w.notify.Add(dir) // else the file is looked at now and then
	}
	w.dirs = wanted
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close()
	}
}
