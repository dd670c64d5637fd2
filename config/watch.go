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

// lookAgain is the interval of reads without an event, as events may be lost.
const lookAgain = 30 * time.Second

// Watch calls changed whenever the content of the file at path, or its readability, differs
// from the last call. The first call comes at once. It returns when ctx ends. Any way of
// writing the file, through any links, is detected; see package dirwatch.
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
	text   []byte // as last read
	reason string // why it could not be read
}

// Cases: ctx ends; an event in a folder; a lost event; the time to read.
func (w *watcher) follow(ctx context.Context, changed func()) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	var first time.Time // of the waiting events; zero if there are none
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

// look reads the file and reports whether it has changed. The folders come first: a change
// after they are watched is an event, and an earlier change is read.
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

// watch watches the relevant folders: of the file, of the links on the way to it, and of a
// missing part.
func (w *watcher) watch() {
	abs, err := filepath.Abs(w.path)
	if err != nil {
		return // the file is still read at intervals
	}
	actual, err := dirwatch.Resolve(abs, func(link string) { w.Add(filepath.Dir(link)) })
	if err == nil {
		w.Add(filepath.Dir(actual))
	}
	w.Sweep()
}
