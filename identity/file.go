package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// readBounded reads a file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the configuration names it
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: larger than %d bytes, the limit of this file", path, most)
	}
	return text, err
}

// watched is the parsed content of a file. A call of look reads the file again if it
// changed, and keeps the last valid content if that fails. No lock is held meanwhile: if two
// calls read at once, the first result counts for both.
type watched[T any] struct {
	path     string
	most     int64
	optional bool // a missing file is no fault until it was there
	now      atomic.Pointer[content[T]]
}

// content is the content of a file at a moment. It is never changed.
type content[T any] struct {
	value T         // the last valid content; zero without one
	found bool      // the file was there, with valid content
	valid time.Time // when the file was last found readable and valid, or allowed to be missing; zero: never
	fault fault
	info  fs.FileInfo // of the file that was read; nil if there was none
	read  time.Time   // when the reading began
}

// fault is a failure that lasts.
type fault struct {
	err   error // nil: none
	since time.Time
}

// when returns the time for people.
func (f fault) when() string { return f.since.UTC().Format(time.RFC3339) }

// after returns the fault after another attempt.
func (f fault) after(err error, now time.Time) fault {
	if err == nil {
		return fault{}
	}
	if f.err == nil {
		f.since = now
	}
	f.err = err
	return f
}

// look returns the content of the file, which it reads if the file changed.
func (w *watched[T]) look(parse func(text []byte) (T, error)) *content[T] {
	old, now := w.now.Load(), time.Now()
	info, err := os.Stat(w.path)
	if old != nil && err == nil && old.unchanged(info) {
		if old.fault.err != nil || now.Sub(old.valid) < freshness {
			return old
		}
		next := *old
		next.valid = now
		return w.swap(old, &next)
	}
	next := content[T]{read: now}
	if old != nil {
		next.value, next.found, next.valid, next.fault = old.value, old.found, old.valid, old.fault
	}
	value, err := w.parsed(parse)
	switch {
	case err == nil:
		next.value, next.found, next.valid = value, true, now
	case w.optional && !next.found && w.missing():
		next.valid, err = now, nil
	}
	next.fault = next.fault.after(err, now)
	if _, unread := errors.AsType[*fs.PathError](err); !unread { // otherwise the next call tries again
		next.info = info
	}
	return w.swap(old, &next)
}

func (w *watched[T]) parsed(parse func(text []byte) (T, error)) (value T, err error) {
	text, err := readBounded(w.path, w.most)
	if err != nil {
		return value, err
	}
	if value, err = safely(func() (T, error) { return parse(text) }); err != nil {
		return value, fmt.Errorf("%s: %w", w.path, err)
	}
	return value, nil
}

// missing reports whether there is a folder without the file. The folder may not be mounted, and
// a link without its target is a broken file.
func (w *watched[T]) missing() bool {
	_, file := os.Lstat(w.path)
	_, folder := os.Stat(filepath.Dir(w.path))
	return errors.Is(file, fs.ErrNotExist) && folder == nil
}

func (w *watched[T]) swap(old, next *content[T]) *content[T] {
	if w.now.CompareAndSwap(old, next) {
		return next
	}
	return w.now.Load()
}

const (
	// freshness is how exact the time of the last look at an unchanged file is kept.
	freshness = time.Second
	// settled is the age from which on the times of a file tell its changes apart: file
	// systems have coarse clocks.
	settled = 2 * time.Second
)

// unchanged reports whether the file is surely the one that was read.
func (c *content[T]) unchanged(info fs.FileInfo) bool {
	return c.info != nil && os.SameFile(c.info, info) && c.info.Size() == info.Size() && c.info.ModTime().Equal(info.ModTime()) &&
		info.ModTime().Before(c.read.Add(-settled))
}
