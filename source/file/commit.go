package file

import (
	"context"
	"time"
)

// scope is what a reading covers: everything, or only some files, of which
// those removed were seen to go by themselves.
type scope struct {
	full    bool
	removed []string // places
}

// commit takes what was read, nil for what is gone, and lists what is
// different for it: only the places concerned, or everything.
func (f *follower) commit(
	ctx context.Context, read map[string]*version, s scope, observed, now time.Time,
) error {
	first := !f.listed
	changes, news := map[string]*version{}, first || f.again && s.full
	for place, next := range read {
		prev := f.registry.files[place]
		if !f.settled(place, prev, next, now) {
			if !first {
				continue
			}
			next = unreadable(place, "the file is empty", "if that is meant, it is taken so shortly")
		}
		if next != nil {
			next = next.after(prev)
		}
		if next != prev {
			changes[place] = next
			news = news || !prev.blank() || !next.blank()
		}
	}
	affected := f.registry.apply(changes)
	if !news {
		return nil
	}
	if s.full {
		affected, f.again = nil, false
	}
	listing := f.registry.listing(affected)
	listing.Observed, listing.Removed = observed, s.removed
	f.listed = true
	return f.sink.Replace(ctx, listing)
}

// settled reports whether what was read may be believed. A file that had
// documents, or may have had before this run, and is empty now is most likely
// being written; so its documents stay until it has been empty for a while.
func (f *follower) settled(place string, prev, next *version, now time.Time) bool {
	empty := next != nil && next.trouble == "" && next.size == 0
	if !empty || prev != nil && prev.blank() {
		delete(f.empty, place)
		return true
	}
	since, seen := f.empty[place]
	if !seen {
		f.empty[place] = now
		return false
	}
	if now.Before(since.Add(f.pace.settle)) {
		return false
	}
	delete(f.empty, place)
	return true
}
