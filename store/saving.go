package store

import (
	"log/slog"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Saving is the progress of saving.
type Saving struct {
	// Saved is the newest moment that is on disk; zero before the first.
	Saved model.At
	// Pending is when the oldest commit that is not on disk was made; zero if all are on
	// disk. A power failure loses the commits since then.
	Pending time.Time
	// Written is the newest moment that was handed to the operating system. A
	// process that is killed loses the commits after it alone.
	Written model.At
	// Unwritten is when the oldest commit after Written was made; zero if there is none.
	Unwritten time.Time
	// Err is why saving fails now, Next the step that helps, Since its begin, and Failures the
	// number of failures in all.
	Err      error
	Next     string
	Since    time.Time
	Failures uint64
}

// Lag returns how long the oldest pending commit has waited for the disk.
func (s Saving) Lag(now time.Time) time.Duration { return lagSince(s.Pending, now) }

// WriteLag returns how long the oldest unwritten commit has waited for the operating
// system.
func (s Saving) WriteLag(now time.Time) time.Duration { return lagSince(s.Unwritten, now) }

func lagSince(then, now time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return max(now.Sub(then), 0)
}

// progress is the progress of saving, shared between goroutines.
type progress struct {
	mu      sync.Mutex // guards all fields; never held across a call
	saving  Saving
	backlog backlog
	epoch   uint64 // of the backlog
}

func (p *progress) read() Saving {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.saving
	s.Pending, s.Unwritten = p.since(s.Saved), p.since(s.Written)
	return s
}

// since is when the oldest commit after a moment was made.
func (p *progress) since(at model.At) time.Time {
	if at.Epoch != p.epoch {
		at.Revision = 0
	}
	return p.backlog.since(at.Revision)
}

// committed notes a commit that is to be saved.
func (p *progress) committed(revision uint64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backlog.add(revision, at)
}

// startsOver notes that everything up to a moment is to be saved anew.
func (p *progress) startsOver(at model.At, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backlog.startOver(at.Revision, now)
	p.epoch = at.Epoch
}

// lost records that no saved state exists any more.
func (p *progress) lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saving.Saved, p.saving.Written = model.At{}, model.At{}
}

// restored records the moment that was on disk at the start.
func (p *progress) restored(at model.At) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saving.Saved, p.saving.Written, p.epoch = at, at, at.Epoch
}

// wrote records the moment handed to the operating system. After a failure, a moment
// may be written again, so Written never goes back.
func (p *progress) wrote(at model.At) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saving.wrote(at)
}

func (s *Saving) wrote(at model.At) {
	if s.Written.Epoch != at.Epoch || s.Written.Revision < at.Revision {
		s.Written = at
	}
}

// saved notes that everything up to a moment is on disk. It reports whether
// saving had failed before.
func (p *progress) saved(at model.At) (failing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failing = p.saving.Err != nil
	p.backlog.done(at.Revision)
	s := &p.saving
	s.wrote(at)
	s.Saved, s.Err, s.Next, s.Since = at, nil, "", time.Time{}
	return failing
}

// savedUpTo notes that everything up to a moment is on disk, and logs the end of a
// failure.
func (p *progress) savedUpTo(at model.At, log *slog.Logger, in folder) {
	if p.saved(at) {
		log.Info("the last known good is being saved again", "folder", string(in), "revision", at.Revision)
	}
}

// failed notes why saving does not work and the step that helps, and returns the earlier error.
func (p *progress) failed(err error, next string, now time.Time) (before error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before = p.saving.Err; before == nil {
		p.saving.Since = now
	}
	p.saving.Failures++
	p.saving.Err, p.saving.Next = err, next
	return before
}

// backlog is the commits that are not on disk, in few groups, the oldest first.
type backlog []backlogGroup

// backlogGroup is commits that were made at about the same time.
type backlogGroup struct {
	until uint64 // of the newest commit of the group
	since time.Time
}

// The commits of a group were made within groupSpan, unless there are mostGroups
// groups.
const (
	groupSpan  = 50 * time.Millisecond
	mostGroups = 64
)

func (b *backlog) add(revision uint64, committed time.Time) {
	if n := len(*b); n > 0 {
		if last := &(*b)[n-1]; committed.Sub(last.since) < groupSpan || n == mostGroups {
			last.until = max(last.until, revision)
			return
		}
	}
	*b = append(*b, backlogGroup{revision, committed})
}

// since returns when the oldest commit after a revision was made; zero if there is
// none.
func (b backlog) since(revision uint64) time.Time {
	for _, g := range b {
		if g.until > revision {
			return g.since
		}
	}
	return time.Time{}
}

// done forgets the commits up to a revision.
func (b *backlog) done(revision uint64) {
	n := 0
	for n < len(*b) && (*b)[n].until <= revision {
		n++
	}
	*b = append((*b)[:0], (*b)[n:]...)
}

// startOver makes everything up to a revision the backlog, also of another epoch.
func (b *backlog) startOver(revision uint64, now time.Time) {
	since := now
	if len(*b) > 0 {
		since = (*b)[0].since
	}
	*b = append((*b)[:0], backlogGroup{revision, since})
}
