package config

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/bounded"
	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
)

var debounce = dirwatch.Debounce{Quiet: 200 * time.Millisecond, Most: 2 * time.Second}

// rereadEvery is the interval of reads without an event: events may be lost.
const rereadEvery = 30 * time.Second

// Followed is a configuration file that is loaded again when it changes. It remembers what was
// loaded last, by whoever did: a file that is changed and changed back meanwhile differs from that,
// although the watch saw no difference.
type Followed struct {
	mu     sync.Mutex
	text   []byte // as last loaded
	reason string // why it could not be read
}

// Load is the function [Load], and remembers the text.
func (f *Followed) Load(path string) (*Config, error) {
	return Known().load(path, f.read, (*Config).check)
}

// read reads the file, and remembers it.
func (f *Followed) read(path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := bounded.File(path)
	f.text, f.reason = text, reasonOf(err)
	return text, err
}

// differs reports whether a load would read something else than the last one.
func (f *Followed) differs(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := bounded.File(path)
	return reasonOf(err) != f.reason || !bytes.Equal(text, f.text)
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Watch calls changed at once, and then whenever the content of the file at path, or the
// reason why it cannot be read, is not that of the last load. It returns when ctx ends. It
// detects any way of writing the file, also through links: see package dirwatch.
func (f *Followed) Watch(ctx context.Context, path string, log *slog.Logger, changed func()) {
	w := &watcher{file: f, path: path, Watcher: dirwatch.New(log.With("file", path))}
	defer w.Close()
	w.watchFolders()
	changed()
	w.follow(ctx, changed)
}

// watcher belongs to the goroutine of [Followed.Watch].
type watcher struct {
	*dirwatch.Watcher
	file *Followed
	path string
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
			w.watchFolders() // first: a change after the read is an event
			if w.file.differs(w.path) {
				changed()
			}
		}
	}
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
