package file

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// concerned returns the files of some events; files that are gone have no path. It
// reports false when the events concern more than files, or when several files are
// gone at once: that may be the first part of the loss of the whole folder.
func (f *follower) concerned(due map[string]window) (map[string]entry, bool) {
	files, gone := map[string]entry{}, 0
	for _, real := range slices.Sorted(maps.Keys(due)) {
		dir, inside := f.tree.dirs[filepath.Dir(real)]
		_, isDir := f.tree.dirs[real]
		switch {
		case f.tree.turns[real], isDir:
			return nil, false
		case !inside:
			continue
		}
		place := path.Join(dir, filepath.Base(real))
		known, isKnown := f.tree.files[place]
		info, err := os.Lstat(real)
		switch {
		case err != nil && !isKnown && !f.registry.isMissing(place):
		case known.linked, f.tree.places[real] != "" && f.tree.places[real] != place:
			return nil, false // a file with several names
		case err != nil:
			files[place] = entry{}
			gone++
		case !info.Mode().IsRegular():
			return nil, false
		case isManifest(place):
			files[place] = entry{path: real}
		}
	}
	return files, gone <= 1
}

// reread reads some files that are due and lists their places.
func (f *follower) reread(
	ctx context.Context, files map[string]entry, due map[string]window, observed, now time.Time,
) error {
	changes := map[string]*version{}
	for place, e := range files {
		changes[place] = nil // unless it is read below
		if e.path == "" {
			delete(f.tree.places, f.tree.files[place].path)
			delete(f.tree.files, place)
			delete(files, place)
			continue
		}
		f.tree.files[place], f.tree.places[e.path] = e, place
	}
	read, err := readAll(ctx, files, f.registry.files, f.memory)
	if err != nil {
		return err
	}
	maps.Copy(changes, read)
	f.putOff(changes, due, now)
	return f.commit(ctx, changes, false, observed, now)
}

// readEverything walks the folder and reads all of it. It lists everything if
// something changed, or if a relist was requested. Files that are being written stay
// as they were until they are due.
func (f *follower) readEverything(ctx context.Context, due map[string]window, observed, now time.Time) error {
	f.scan = nil // reading everything finds as much
	t, versions, err := f.readTree(ctx)
	// Files that disappear during the first reading may be the beginning of the whole
	// folder's loss. Their documents are unknown.
	for looks := 1; err == nil && f.tree == nil && (t.gone || len(versions) < len(t.files)); looks++ {
		if looks == mostLooks {
			return fmt.Errorf("%s: files disappear while they are read", f.root)
		}
		t, versions, err = f.readTree(ctx)
	}
	if err != nil {
		return err
	}
	f.tree = t
	if v := versions[t.single]; v != nil && v.trouble != "" {
		return fmt.Errorf("%s: %s", f.root, v.trouble)
	}
	f.coverBlind(versions)
	changes := versions
	for place := range f.registry.files {
		if versions[place] == nil {
			changes[place] = nil
		}
	}
	f.passOver(changes)
	f.putOff(changes, due, now)
	return f.commit(ctx, changes, true, observed, now)
}

// mostLooks bounds how often the first reading of a folder begins anew.
const mostLooks = 5

// readTree walks the folder and reads its files, except files that disappear meanwhile.
func (f *follower) readTree(ctx context.Context) (*tree, map[string]*version, error) {
	t, err := walk(f.root, f.folders, f.watch.Add)
	if err == nil && f.tree == nil {
		err = t.why // stored records of the files in there are unknown, so nothing can be listed
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.root, bare(err))
	}
	f.watch.Sweep()
	versions, err := readAll(ctx, t.files, f.registry.files, f.memory)
	return t, versions, err
}

// coverBlind adds rejections for the files of folders that are unreadable, or not
// read. These files are not gone: rejected, they keep their stored records, and
// everything else goes on. (At the first listing the files in an unreadable folder
// are unknown. The run fails then, since any listing would wrongly remove them.)
func (f *follower) coverBlind(versions map[string]*version) {
	stand := func(place, trouble string) {
		v := &version{trouble: trouble, docs: []doc{{rejection: &source.Rejection{Place: place, Where: place, Reason: trouble}}}}
		if known := f.registry.files[place]; v.same(known) {
			v = known
		}
		versions[place] = v
	}
	const unread = "the folder cannot be read: make it readable, or move it elsewhere"
	for _, dir := range f.tree.blind {
		stand(dir, unread)
	}
	for _, link := range f.tree.outside {
		stand(link, "cannot be read: "+errOutside.Error())
	}
	if f.tree.beyond > 0 {
		stand(".", fmt.Sprintf("it has more than the %d folders that are read: divide it into several sources, or move what is no manifest elsewhere", f.folders))
	}
	covered := func(place string) bool { return versions[place] == nil && f.tree.covers(place) }
	for place := range f.registry.files {
		if covered(place) {
			stand(place, "its folder is not read: make it readable, or move it elsewhere")
		}
	}
	for _, place := range f.registry.unread() {
		if covered(place) {
			stand(place, "its folder is not read: make it readable, or move it elsewhere")
		}
	}
}
