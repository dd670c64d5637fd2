package file

import (
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

func known(ref model.Ref) bool { return ref != (model.Ref{}) }

// isMissing reports whether a file is not there, and not taken for gone yet.
func (r *registry) isMissing(place string) bool {
	_, missing := r.missing[place]
	return missing
}

// miss notes files that are not there, and passes the names that other files
// claim as well on to these. It returns the places that are different for it.
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

// findAgain puts off looking for a file that is there, if not ready to be read.
func (r *registry) findAgain(place string, now time.Time) {
	if r.isMissing(place) {
		r.missing[place] = now
	}
}

// present returns the claims of a name by files that are there.
func (r *registry) present(ref model.Ref) []claim {
	if len(r.missing) == 0 {
		return r.claims[ref]
	}
	return slices.DeleteFunc(slices.Clone(r.claims[ref]), func(c claim) bool { return r.isMissing(c.place) })
}

// says reports whether anything is known of a file that would be lost with it:
// all of what was in one that is missing may have moved.
func (r *registry) says(place string) bool {
	v := r.files[place]
	if !r.isMissing(place) || v.blank() {
		return !v.blank()
	}
	listing := r.listing([]string{place})
	return len(listing.Objects) > 0 || len(listing.Rejected) > 0 || len(v.ignored) > 0
}

// mostGone bounds, in times of what one file waits, how long it waits for others.
const mostGone = 3

// goneAt is when a file is gone that is missing since then. It waits for those
// that go missing after it: a folder that is removed loses one after the other,
// and what is lost together is to be judged together.
func (f *follower) goneAt(since time.Time) time.Time {
	return earlier(f.registry.missed.Add(f.pace.gone), since.Add(mostGone*f.pace.gone))
}

// isFile tells files from folders that could not be read, which have an entry,
// too, for as long as that is so.
func (f *follower) isFile(place string) bool { return isManifest(place) || place == f.tree.single }

// lookForMissing has those files looked for once more that have been missing
// for so long that they are gone unless they are found now. What was in them may
// be in files that are being written, so these are read before.
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
			f.lookAt = w.due // it is back, and being written
			continue
		}
		f.pending.look(actual, now)
	}
}

// pathOf returns where a folder is that has a place.
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
