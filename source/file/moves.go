package file

import (
	"path"
	"path/filepath"
	"slices"
	"time"
)

// passOver leaves out of a reading of everything the files that are being written.
// What turns out to be a folder or a link has been walked, and need not be again.
func (f *follower) passOver(read map[string]*version) {
	for actual := range f.pending.files {
		if _, isDir := f.tree.dirs[actual]; isDir || f.tree.turns[actual] {
			delete(f.pending.files, actual)
			continue
		}
		place, known := f.tree.places[actual]
		if dir, inside := f.tree.dirs[filepath.Dir(actual)]; !known && inside {
			place = path.Join(dir, filepath.Base(actual))
		}
		if !f.tree.covers(place) {
			delete(read, place)
		}
	}
}

// putOff leaves files out of a reading that may be one half of a move, while
// others are being written that may have the other half: moving an object from
// one file to another is one step, although each file is read by itself. All of
// it waits for what is being written now, but not for what is written later.
func (f *follower) putOff(read map[string]*version, due map[string]window, now time.Time) {
	if len(f.pending.files) == 0 {
		return
	}
	for place, next := range read {
		e, exists := f.tree.files[place]
		if exists && f.registry.moves(place, next) && f.pending.waitOn(e.path, due[e.path], now) {
			delete(read, place)
		}
	}
}

// moves reports whether a new version of a file lacks an object that it had, or
// has one that it had not and that another file has. A file that is not there is
// waited for in any case.
func (r *registry) moves(place string, next *version) bool {
	prev := r.files[place]
	if next == nil || next == prev {
		return false
	}
	had, has := prev.names(), next.after(prev).names()
	for ref := range had {
		if !has[ref] {
			return true
		}
	}
	for ref := range has {
		elsewhere := func(c claim) bool { return c.place != place }
		if !had[ref] && slices.ContainsFunc(r.claims[ref], elsewhere) {
			return true
		}
	}
	return false
}
