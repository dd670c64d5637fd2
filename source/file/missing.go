package file

import (
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

func known(ref model.Ref) bool { return ref != (model.Ref{}) }

// isMissing reports whether a file is missing, but not counted as gone yet.
func (r *registry) isMissing(place string) bool {
	_, missing := r.missing[place]
	return missing
}

// miss notes missing files, and passes names on to other files that describe them as
// well. It returns the places with a changed listing.
func (r *registry) miss(places []string, now time.Time) []string {
	var fresh []string
	for _, place := range places {
		if !r.isMissing(place) {
			r.missing[place], r.missed = now, now
			fresh = append(fresh, place)
		}
	}
	affected := map[string]bool{}
	for _, place := range fresh {
		for ref := range r.files[place].refs() {
			left := r.present(ref)
			if len(left) == 0 {
				continue
			}
			r.claims[ref] = left
			affected[place] = true
			for _, c := range left {
				affected[c.place] = true
			}
		}
	}
	return sorted(affected)
}

// findAgain restarts the wait for a missing file that is back, but not ready to be read.
func (r *registry) findAgain(place string, now time.Time) {
	if r.isMissing(place) {
		r.missing[place] = now
	}
}

// present returns the claims of a name by files that are not missing.
func (r *registry) present(ref model.Ref) []claim {
	if len(r.missing) == 0 {
		return r.claims[ref]
	}
	return slices.DeleteFunc(slices.Clone(r.claims[ref]), func(c claim) bool { return r.isMissing(c.place) })
}

// says reports whether a file has listed documents that would be lost with it: all
// documents of a missing file may have moved.
func (r *registry) says(place string) bool {
	v := r.files[place]
	if !r.isMissing(place) || v.blank() {
		return !v.blank()
	}
	listing := r.listing([]string{place})
	return len(listing.Objects) > 0 || len(listing.Rejected) > 0 || len(v.ignored) > 0
}

// mostGone bounds how long a file waits for others, in multiples of its own wait.
const mostGone = 3

// goneAt returns when a file that is missing since then counts as gone. It waits for
// files that go missing later. A removed folder loses one file after the other, and
// records that are lost together are to be judged together.
func (f *follower) goneAt(since time.Time) time.Time {
	return earlier(f.registry.missed.Add(f.pace.gone), since.Add(mostGone*f.pace.gone))
}

// isFile distinguishes files from unreadable folders, which have an entry, too, while
// they are unreadable.
func (f *follower) isFile(place string) bool { return isManifest(place) || place == f.tree.single }

// lookForMissing schedules a last look at files that have been missing for too long.
// They are gone unless they are found now. Their documents may be in files that are
// being written, so these are read before.
func (f *follower) lookForMissing(now time.Time) {
	for place, since := range f.registry.missing {
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

// pathOf returns the path of the folder with a place.
func (t *tree) pathOf(place string) (actual string, exists bool) {
	if place == "." {
		place = ""
	}
	for actual, p := range t.dirs {
		if p == place {
			return actual, true
		}
	}
	return "", false
}
