package config

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
)

var debounce = dirwatch.Debounce{Quiet: 200 * time.Millisecond, Most: 2 * time.Second}

// lookAgain is the time between looks without an event, as events may be lost.
const lookAgain = 30 * time.Second

// Watch calls changed whenever the file at path says something else than when
// it was last called, or can no longer be read, or can be read again; the first
// time at once. It returns when ctx ends. How the file is written, and through
// which links, makes no difference; see package dirwatch.
func Watch(ctx context.Context, path string, log *slog.Logger, changed func()) {
	w := &watcher{path: path, Watcher: dirwatch.New(log.With("file", path))}
	defer w.Close()
	w.look()
	changed()
	w.follow(ctx, changed)
}

// watcher belongs to the goroutine of [Watch].
type watcher struct {
	*dirwatch.Watcher
	path   string
	text   []byte // when last looked at
	reason string // why it could not be read
}

// follow waits for: the end, an event in a folder, a lost event, the time to look.
func (w *watcher) follow(ctx context.Context, changed func()) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	var first time.Time // of the events that wait; zero if none does
	note := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		timer.Reset(debounce.Due(first, now).Sub(now))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.Events():
			note()
		case <-w.Lost():
			note()
		case <-timer.C:
			first = time.Time{}
			timer.Reset(lookAgain)
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

// watch watches the folders that matter now: those of the file, of the links on
// the way to it, and of what is missing there.
func (w *watcher) watch() {
	abs, err := filepath.Abs(w.path)
	if err != nil {
		return // the file is looked at now and then
	}
	actual, err := dirwatch.Resolve(abs, func(link string) { w.Add(filepath.Dir(link)) })
	if err == nil {
		w.Add(filepath.Dir(actual))
	}
	w.Sweep()
}
