package file

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/source/file/documents"
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
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, false // it may be there
		case err != nil && !isKnown && !f.describes(place):
		case known.linked, f.tree.places[real] != "" && f.tree.places[real] != place:
			return nil, false // a file with several names
		case err != nil && !isGone(real):
			return nil, false // the event about the folder is on its way
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

// isGone reports whether a missing file is gone from a folder that is there, at a path without
// links. Another folder may have come there since the file was missing, so it is looked for again.
func isGone(actual string) bool {
	mode, err := typeOf(filepath.Dir(actual))
	if err != nil || !mode.IsDir() {
		return false
	}
	_, err = os.Lstat(actual)
	return errors.Is(err, fs.ErrNotExist)
}

// describes reports whether a file in a readable folder has documents, even if the last
// walk did not find it. Its removal may have been left to an event by [follower.passOver].
func (f *follower) describes(place string) bool {
	return f.documents.Version(place) != nil && !f.tree.covers(place)
}

// reread reads some files that are due and lists their places.
func (f *follower) reread(
	ctx context.Context, files map[string]entry, due map[string]window, observed, now time.Time,
) error {
	changes := map[string]*documents.Version{}
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
	read, err := readFiles(ctx, files, f.documents, f.objects, f.memory)
	if err != nil {
		return err
	}
	maps.Copy(changes, read)
	f.putOff(changes, due, now)
	return f.commit(ctx, changes, false, observed, now)
}

// readEverything walks the folder and reads all of it. It lists everything if
// something changed, or if a relist was requested. Files that are being written stay
// as they were until they are due. The next reading begins no sooner than after a pause as
// long as this one, so that single files are read in between.
func (f *follower) readEverything(ctx context.Context, due map[string]window, observed, now time.Time) error {
	f.scan = nil // reading everything finds as much
	changes, err := f.readAll(ctx)
	if err != nil {
		return err
	}
	f.passOver(changes)
	f.putOff(changes, due, now)
	err = f.commit(ctx, changes, true, observed, now)
	f.pending.calm = time.Now().Add(time.Since(now))
	return err
}
