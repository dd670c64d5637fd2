package file

import (
	"time"

	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
)

// window delays the reading of a change: it is due once there was no event for a
// while, or when it has been open for long.
type window struct {
	first time.Time // when it opened
	due   time.Time
	since time.Time // since when it waits for other files, too; zero if it does not
}

// note records one more event.
func (w window) note(now time.Time, p pace) window {
	if w.first.IsZero() {
		w.first = now
	}
	w.due = dirwatch.Debounce{Quiet: p.quiet, Most: p.most}.Due(w.first, now)
	return w
}

// mostPending bounds the number of files with open windows. More is a change of the
// whole folder, and is read as one.
const mostPending = 4096

// pending are the changes that are not read yet. Each file has a window of its own,
// so that a quiet file never waits because others are not. Changes beyond single
// files, such as to a link or a folder, share one window.
type pending struct {
	pace  pace
	files map[string]window // by path
	next  time.Time         // none of files is due before
	whole window            // zero first while closed
	calm  time.Time         // end of the pause after a reading of everything
}

func newPending(p pace) *pending { return &pending{pace: p, files: map[string]window{}} }

// note records an event about a file.
func (p *pending) note(path string, now time.Time) {
	if w, open := p.files[path]; open {
		p.files[path] = w.note(now, p.pace)
		return
	}
	p.open(path, window{}.note(now, p.pace), now)
}

// open opens a window for one more file.
func (p *pending) open(path string, w window, now time.Time) {
	if len(p.files) >= mostPending {
		p.noteWhole(now)
		return
	}
	if len(p.files) == 0 || w.due.Before(p.next) {
		p.next = w.due
	}
	p.files[path] = w
}

// look schedules an immediate reading of a file, unless it is being written.
func (p *pending) look(path string, now time.Time) {
	if !p.has(path) {
		p.open(path, window{first: now, due: now}, now)
	}
}

func (p *pending) has(path string) bool {
	_, open := p.files[path]
	return open
}

// noteWhole records an event about more than files.
func (p *pending) noteWhole(now time.Time) {
	p.whole = p.whole.note(now, p.pace)
	p.whole.due = later(p.whole.due, p.calm)
}

// everything requests a reading of everything at some time, unless one is due before.
// Files that are being written then are read by themselves later.
func (p *pending) everything(first, due time.Time) {
	if p.awaitsWhole() {
		first, due = earlier(first, p.whole.first), earlier(due, p.whole.due)
	}
	p.whole = window{first: first, due: due}
}

func (p *pending) awaitsWhole() bool { return !p.whole.first.IsZero() }

// due returns when to call take, or never if that is earlier. As windows may be
// extended, the time may turn out to be too early.
func (p *pending) due(never time.Time) time.Time {
	due := never
	if p.awaitsWhole() {
		due = earlier(due, p.whole.due)
	}
	if len(p.files) > 0 {
		due = earlier(due, p.next)
	}
	return due
}

// batch is the fraction of the quiet time by which a window may be taken early,
// together with another. Windows due at about the same time are one reading. So the
// readings per second are bounded however many files change.
const batch = 5

// take returns the windows that are due, and closes them.
func (p *pending) take(now time.Time) (files map[string]window, whole window) {
	p.next = p.first()
	if p.due(now.Add(1)).After(now) {
		return nil, window{}
	}
	soon := now.Add(p.pace.quiet / batch)
	files = map[string]window{}
	for path, w := range p.files {
		if !w.due.After(soon) {
			files[path] = w
			delete(p.files, path)
		}
	}
	p.next = p.first()
	if p.awaitsWhole() && !p.whole.due.After(soon) {
		whole, p.whole = p.whole, window{}
	}
	return files, whole
}

// first returns when the first file is due.
func (p *pending) first() (due time.Time) {
	for _, w := range p.files {
		if due.IsZero() || w.due.Before(due) {
			due = w.due
		}
	}
	return due
}

// after returns the time at which every change before some time has been read. The
// time is bounded, whatever keeps changing.
func (p *pending) after(t time.Time) time.Time {
	last := t
	for _, w := range p.files {
		if !w.first.After(t) && w.due.After(last) {
			last = w.due
		}
	}
	return earlier(last, t.Add(p.pace.most))
}

// waitOn delays reading a file until the files that have changed by now are read. It
// reports false if there are none, or it has waited for long enough.
func (p *pending) waitOn(path string, w window, now time.Time) bool {
	if w.first.IsZero() {
		w.first = now
	}
	if w.since.IsZero() {
		w.since = now
	}
	w.due = earlier(p.after(w.since), w.first.Add(p.pace.most))
	if !w.due.After(now) || len(p.files) >= mostPending {
		return false
	}
	p.open(path, w, now)
	return true
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
