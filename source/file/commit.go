package file

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/source/file/documents"
)

// commit applies newly read versions, nil for gone files, and passes on a listing of
// the changes: only the places concerned, or everything if all was read.
func (f *follower) commit(ctx context.Context, read map[string]*documents.Version, full bool, observed, now time.Time) error {
	first := !f.listed
	set := f.documents
	changes, dirty := map[string]*documents.Version{}, first || f.again && full
	var missing []string
	for place, next := range read {
		prev := set.Version(place)
		if next == nil && f.waits(place, prev, now) {
			missing = append(missing, place)
			continue
		}
		if !f.settled(place, prev, next, now) {
			if !first {
				set.FindAgain(place, now)
				continue
			}
			next = documents.Unreadable(place, "the file is empty", "if that is meant, it is taken so shortly")
		}
		if next != nil {
			next = set.Successor(place, next)
		}
		if next != prev || set.IsMissing(place) {
			changes[place] = next
			dirty = dirty || set.Lists(place) || !next.Blank()
		}
	}
	affected := set.Miss(missing, now)
	dirty = dirty || len(affected) > 0
	affected = append(affected, set.Apply(changes)...)
	if err := f.unreadable(); err != nil {
		return err
	}
	if !dirty {
		return nil
	}
	if full {
		affected, f.again = nil, false
	} else {
		slices.Sort(affected)
		affected = slices.Compact(affected)
	}
	listing := set.Listing(affected)
	listing.Observed = observed
	f.listed = true
	return f.sink.Replace(ctx, listing)
}

// unreadable returns why nothing can be read, if there are files and none of them could
// be read. That is an error like the loss of the folder, and no listing. An empty file
// that is about to be used was read.
func (f *follower) unreadable() error {
	err := f.documents.Trouble()
	if err == nil || len(f.empty) > 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", f.root, err)
}

// waits reports whether it is too early to treat a file as gone. It may be about to
// be written anew, or its documents may appear in another file.
func (f *follower) waits(place string, prev *documents.Version, now time.Time) bool {
	since, missing := f.documents.MissingSince(place)
	return !prev.Blank() && f.isFile(place) && (!missing || now.Before(f.goneAt(since)) || now.Before(f.lookAt))
}

// isFile distinguishes files from unreadable folders, which have an entry, too, while
// they are unreadable.
func (f *follower) isFile(place string) bool { return isManifest(place) || place == f.tree.single }

// settled reports whether a new version may be used. An empty file that had
// documents, or may have had some before this run, is most likely being written. So
// its documents stay until it has been empty for a while.
func (f *follower) settled(place string, prev, next *documents.Version, now time.Time) bool {
	if !next.Empty() || prev != nil && prev.Blank() {
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

// mostGone bounds how long a file waits for others, in multiples of its own wait.
const mostGone = 3

// goneAt returns when a file that is missing since then counts as gone. It waits for
// files that go missing later. A removed folder loses one file after the other, and
// records that are lost together are to be judged together.
func (f *follower) goneAt(since time.Time) time.Time {
	return earlier(f.documents.LastMissed().Add(f.pace.gone), since.Add(mostGone*f.pace.gone))
}

// lookForMissing schedules a last look at files that have been missing for too long.
// They are gone unless they are found now. Their documents may be in files that are
// being written, so these are read before.
func (f *follower) lookForMissing(now time.Time) {
	for place, since := range f.documents.Missing() {
		at := f.goneAt(since)
		if now.Before(at) || now.Before(f.lookAt) {
			continue
		}
		if at = f.pending.after(at); now.Before(at) {
			f.lookAt = at
			continue
		}
		dir, exists := f.tree.pathOf(path.Dir(place))
		if !exists {
			f.pending.everything(now, now)
			continue
		}
		actual := filepath.Join(dir, path.Base(place))
		if w, open := f.pending.files[actual]; open {
			f.lookAt = w.due // the file is back, and being written
			continue
		}
		f.pending.look(actual, now)
	}
}

// passOver removes files that are being written from a reading of everything. Folders
// and links among them have been walked, and are not pending any more.
func (f *follower) passOver(read map[string]*documents.Version) {
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
func (f *follower) putOff(read map[string]*documents.Version, due map[string]window, now time.Time) {
	if len(f.pending.files) == 0 {
		return
	}
	for place, next := range read {
		e, exists := f.tree.files[place]
		if exists && f.documents.Moves(place, next) && f.pending.waitOn(e.path, due[e.path], now) {
			delete(read, place)
		}
	}
}
