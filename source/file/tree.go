package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/dirwatch"
)

// tree is the shape of the folder at the moment it was walked. All paths on
// the disk are real ones, free of links, so that each thing has one path and
// an event tells which thing it is about.
type tree struct {
	files  map[string]entry  // by place
	places map[string]string // place of a file, by its path
	dirs   map[string]string // place of a folder, by its path; "" for the root
	// turns are links on the way to files, and what they lead to beyond the
	// folder. When one changes, anything may have changed.
	turns  map[string]bool
	single string   // place of the file, if the root is one
	blind  []string // places of folders that could not be read
	why    error    // the first reason
	// gone says that a folder was gone before it was read.
	gone bool
}

// entry is a file to read.
type entry struct {
	path   string
	linked bool  // the name in the folder is a link
	err    error // why it is known without reading that it cannot be read
}

// walker walks the folder. Each folder on the way is handed to watch before
// it is read, so that what changes in it afterwards is not missed.
type walker struct {
	tree  tree
	watch func(dir string)
}

// walk finds the files below root. It fails when the root is not there or
// cannot be read.
func walk(root string, watch func(dir string)) (*tree, error) {
	w := walker{tree{
		files: map[string]entry{}, places: map[string]string{}, dirs: map[string]string{}, turns: map[string]bool{},
	}, watch}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	actual, err := dirwatch.Resolve(abs, w.turn)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(actual)
	if err != nil {
		return nil, err
	}
	w.turn(actual) // the root itself being replaced
	if !info.IsDir() {
		w.tree.single = filepath.Base(abs)
		w.add(w.tree.single, entry{path: actual, linked: true})
		return &w.tree, nil
	}
	if err := w.folder(actual, ""); err != nil {
		return nil, err
	}
	return &w.tree, nil
}

// turn notes a path that decides where others lead.
func (w *walker) turn(actual string) {
	w.tree.turns[actual] = true
	w.watch(filepath.Dir(actual))
}

func (w *walker) folder(actual, place string) error {
	if _, seen := w.tree.dirs[actual]; seen {
		return nil // by a link to where we have been, or are
	}
	w.tree.dirs[actual] = place
	w.watch(actual)
	children, err := os.ReadDir(actual)
	if err != nil {
		return err
	}
	for _, child := range children {
		if name := child.Name(); !strings.HasPrefix(name, ".") {
			w.child(filepath.Join(actual, name), path.Join(place, name), child.Type())
		}
	}
	return nil
}

func (w *walker) child(actual, place string, mode fs.FileMode) {
	e := entry{path: actual}
	if mode&fs.ModeSymlink != 0 {
		e.linked = true
		target, err := dirwatch.Resolve(actual, w.turn)
		if err == nil {
			w.turn(target)
			mode, err = typeOf(target)
		}
		if err != nil {
			e.err, mode = err, 0
		} else {
			e.path = target
		}
	}
	switch {
	case mode.IsDir():
		w.subfolder(e.path, place)
	case !isManifest(place):
	case mode.IsRegular():
		w.add(place, e)
	default: // reading a pipe would block
		e.err = errors.New("not a regular file")
		w.add(place, e)
	}
}

func typeOf(actual string) (fs.FileMode, error) {
	info, err := os.Lstat(actual)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

func (w *walker) subfolder(actual, place string) {
	err := w.folder(actual, place)
	if errors.Is(err, fs.ErrNotExist) { // gone since its parent was read
		w.tree.gone = true
		return
	}
	if err != nil {
		w.tree.blind = append(w.tree.blind, place)
		if w.tree.why == nil {
			w.tree.why = fmt.Errorf("folder %s: %w", place, bare(err))
		}
	}
}

// add takes a file, unless it was taken by another name.
func (w *walker) add(place string, e entry) {
	if _, taken := w.tree.places[e.path]; taken {
		return
	}
	w.tree.places[e.path] = place
	w.tree.files[place] = e
}

// isManifest reports whether a file is read by its name.
func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

// concerns reports whether a change at a path may matter. Folders that are
// watched for one name in them bring many events that do not.
func (t *tree) concerns(actual string) bool {
	_, isDir := t.dirs[actual]
	_, inside := t.dirs[filepath.Dir(actual)]
	return t.turns[actual] || isDir || inside && !strings.HasPrefix(filepath.Base(actual), ".")
}

// covers reports whether a place lies in a folder that could not be read.
func (t *tree) covers(place string) bool {
	return slices.ContainsFunc(t.blind, func(dir string) bool { return strings.HasPrefix(place, dir+"/") })
}

// bare drops the path from an error that is shown beside it.
func bare(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
