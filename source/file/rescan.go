package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// scan looks through the folder for files that changed without an event. It proceeds
// in steps, with pauses, so that changes with an event do not wait for it. A scan
// only compares: if a file differs, everything is read and listed together, as one
// step.
//
// For some differing files, the event is still on its way. So these are compared once
// more later.
type scan struct {
	left    []string          // places of files that are still to be compared
	suspect map[string]string // places of files that look different, by path
	next    time.Time         // time of the next step
	again   bool              // the next step compares the suspects once more
}

// Duration of a step, unless a single file takes longer, and the pause after it in
// multiples of its duration.
const (
	stepFor  = 5 * time.Millisecond
	pauseFor = 3
)

// beginScan walks the folder. If its shape has changed, everything is read.
func (f *follower) beginScan(now time.Time) error {
	t, err := walk(f.root, f.folders, f.watch.Add)
	if err != nil {
		return fmt.Errorf("%s: %w", f.root, bare(err))
	}
	f.watch.Sweep()
	if !t.shaped(f.tree) {
		f.pending.everything(now, now)
		return nil
	}
	f.scan = &scan{left: slices.Collect(maps.Keys(f.tree.files)), suspect: map[string]string{}, next: now}
	for place, e := range t.files {
		if _, known := f.tree.files[place]; !known {
			f.scan.suspect[e.path] = place
		}
	}
	return nil
}

// shaped reports whether a tree has the same folders and links as another, and the
// same unreadable ones.
func (t *tree) shaped(as *tree) bool {
	for place, e := range t.files {
		known, exists := as.files[place]
		if exists && (e.path != known.path || e.linked != known.linked) || !exists && e.linked {
			return false
		}
	}
	return t.root == as.root && t.single == as.single && t.beyond == as.beyond && !t.gone &&
		maps.Equal(t.dirs, as.dirs) && maps.Equal(t.walked, as.walked) && maps.Equal(t.turns, as.turns) &&
		slices.Equal(t.blind, as.blind) && slices.Equal(t.outside, as.outside)
}

// stepScan continues a scan.
func (f *follower) stepScan(ctx context.Context, now time.Time) error {
	s := f.scan
	if s.again {
		return f.endScan(ctx, now)
	}
	begun := time.Now()
	for len(s.left) > 0 && time.Since(begun) < stepFor {
		place := s.left[0]
		s.left = s.left[1:]
		e, exists := f.tree.files[place]
		if !exists {
			continue // the file is gone, and there was an event
		}
		differs, err := f.differs(ctx, place, e.path)
		if err != nil {
			return err
		}
		if differs {
			s.suspect[e.path] = place
		}
	}
	s.next = now.Add((1 + pauseFor) * time.Since(begun))
	if s.again = len(s.left) == 0; s.again && f.watch.Events() != nil {
		s.next = now.Add(f.pace.most)
	}
	return nil
}

// endScan schedules a reading of everything if some file still differs from its
// version without an event.
func (f *follower) endScan(ctx context.Context, now time.Time) error {
	suspect := f.scan.suspect
	f.scan = nil
	for path, place := range suspect {
		differs, err := f.differs(ctx, place, path)
		if err != nil {
			return err
		}
		if differs {
			f.pending.everything(now, now)
			return nil
		}
	}
	return nil
}

// differs reports whether a file differs from its version, and no event is pending
// for it.
func (f *follower) differs(ctx context.Context, place, path string) (bool, error) {
	if f.pending.has(path) {
		return false, nil
	}
	e, known := f.tree.files[place]
	if !known {
		_, err := os.Lstat(path)
		return err == nil, nil
	}
	was := f.registry.files[place]
	is, err := read(ctx, place, e, was, f.memory)
	if errors.Is(err, errGone) {
		return true, nil
	}
	return is != was, err
}
