package file

import (
	"context"
	"fmt"
	"maps"
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

// beginScan walks the folder. It returns no scan if the shape of the folder has
// changed, so that everything is to be read.
func (f *folder) beginScan(now time.Time) (*scan, error) {
	t, err := walk(f.root, f.most, f.watch.Add)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.root, bare(err))
	}
	f.watch.Sweep()
	if !t.shaped(f.tree) {
		return nil, nil //nolint:nilnil // nothing is wrong with none
	}
	s := &scan{left: slices.Collect(maps.Keys(f.tree.files)), suspect: map[string]string{}, next: now}
	for place, e := range t.files {
		if _, known := f.tree.files[place]; !known {
			s.suspect[e.path] = place
		}
	}
	return s, nil
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

// step compares some files, and schedules the next step. Files with a pending event are
// passed over: they are read anyway.
func (s *scan) step(ctx context.Context, f *folder, pending *pending, now time.Time, again time.Duration) error {
	begun := time.Now()
	for len(s.left) > 0 && time.Since(begun) < stepFor {
		place := s.left[0]
		s.left = s.left[1:]
		e, exists := f.tree.files[place]
		if !exists || pending.has(e.path) {
			continue // if the file is gone, there was an event
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
		s.next = now.Add(again)
	}
	return nil
}

// end reports whether some file still differs from its version without an event.
func (s *scan) end(ctx context.Context, f *folder, pending *pending) (bool, error) {
	for path, place := range s.suspect {
		if pending.has(path) {
			continue
		}
		if differs, err := f.differs(ctx, place, path); differs || err != nil {
			return differs, err
		}
	}
	return false, nil
}
