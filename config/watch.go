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

// rereadEvery is the interval of reads without an event: events may be lost.
const rereadEvery = 30 * time.Second

// Watch calls changed at once, and then whenever the content of the file at path, or the
// reason why it cannot be read, has changed. It returns when ctx ends. It detects any way of
// writing the file, also through links: see package dirwatch.
func Watch(ctx context.Context, path string, log *slog.Logger, changed func()) {
	w := &watcher{path: path, Watcher: dirwatch.New(log.With("file", path))}
	defer w.Close()
	w.reread()
	changed()
	w.follow(ctx, changed)
}

// watcher holds the last read content of a file. It belongs to the goroutine of [Watch].
type watcher struct {
	*dirwatch.Watcher
	path   string
	text   []byte // as last read
	reason string // why it could not be read
}

// follow reads the file after events and at intervals. Cases: ctx ends; an event in a
// folder; a lost event; the time to read.
func (w *watcher) follow(ctx context.Context, changed func()) {
	timer := time.NewTimer(rereadEvery)
	defer timer.Stop()
	var first time.Time // time of the first event that waits; zero if none does
	debounced := func() {
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
			debounced()
		case <-w.Lost():
			debounced()
		case <-timer.C:
			first = time.Time{}
			timer.Reset(rereadEvery)
			if w.reread() {
				changed()
			}
		}
	}
}

// reread reads the file and reports whether it has changed. The folders are watched first,
// so no change is lost: a later change is an event, and the read sees an earlier one.
func (w *watcher) reread() bool {
	w.watchFolders()
	text, err := os.ReadFile(w.path)
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	same := reason == w.reason && bytes.Equal(text, w.text)
	w.text, w.reason = text, reason
	return !same
}

// watchFolders watches the folders of the file and of the links to it. If a part of the path
// is missing, it watches the folder where the part would appear.
func (w *watcher) watchFolders() {
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
