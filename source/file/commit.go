package file

import (
	"context"
	"slices"
	"time"
)

// commit applies newly read versions, nil for gone files, and passes on a listing of
// the changes: only the places concerned, or everything if all was read.
func (f *follower) commit(ctx context.Context, read map[string]*version, full bool, observed, now time.Time) error {
	first := !f.listed
	changes, dirty := map[string]*version{}, first || f.again && full
	var missing []string
	for place, next := range read {
		prev := f.registry.files[place]
		if next == nil && f.waits(place, prev, now) {
			missing = append(missing, place)
			continue
		}
		if !f.settled(place, prev, next, now) {
			if !first {
				f.registry.findAgain(place, now)
				continue
			}
			next = unreadable(place, "the file is empty", "if that is meant, it is taken so shortly")
		}
		switch {
		case next == nil:
		case prev == nil:
			next = f.registry.recall(place, next)
		default:
			next = next.after(prev)
		}
		if next != prev || f.registry.isMissing(place) {
			changes[place] = next
			dirty = dirty || f.registry.says(place) || !next.blank()
		}
	}
	affected := f.registry.miss(missing, now)
	dirty = dirty || len(affected) > 0
	affected = append(affected, f.registry.apply(changes)...)
	if !dirty {
		return nil
	}
	if full {
		affected, f.again = nil, false
	} else {
		slices.Sort(affected)
		affected = slices.Compact(affected)
	}
	listing := f.registry.listing(affected)
	listing.Observed = observed
	f.listed = true
	return f.sink.Replace(ctx, listing)
}

// waits reports whether it is too early to treat a file as gone. It may be about to
// be written anew, or its documents may appear in another file.
func (f *follower) waits(place string, prev *version, now time.Time) bool {
	since, missing := f.registry.missing[place]
	return !prev.blank() && f.isFile(place) && (!missing || now.Before(f.goneAt(since)) || now.Before(f.lookAt))
}

// settled reports whether a new version may be used. An empty file that had
// documents, or may have had some before this run, is most likely being written. So
// its documents stay until it has been empty for a while.
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
