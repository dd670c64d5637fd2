package file

import (
	"path"
	"path/filepath"
	"slices"
	"time"
)

// passOver removes files that are being written from a reading of everything. Folders
// and links among them have been walked, and are not pending any more.
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

// putOff removes files that may be one half of a move from a reading, while
// candidates for the other half are being written. Moving an object from one file to
// another is one step, although each file is read by itself. The removed files wait
// for the files being written now, not for later ones.
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

// moves reports whether a new version of a file lacks an old object, or has a new
// object that another file has. A missing file is waited for in any case.
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
