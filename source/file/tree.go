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

// tree is the shape of the folder at the moment it was walked. All paths on the disk
// are real ones, free of links. So each file has one path and an event identifies its
// file.
type tree struct {
	files  map[string]entry  // by place
	places map[string]string // place of a file, by its path
	dirs   map[string]string // place of a folder, by its path; "" for the root
	walked map[string]bool   // places of folders
	// turns are links on the way to files, and their targets beyond the folder. When
	// one changes, anything may have changed.
	turns  map[string]bool
	root   string   // the folder itself; empty if it is a file
	single string   // place of the file, if the root is one
	blind  []string // places of folders that could not be read
	why    error    // the first reason
	// outside are places of links to folders that are not below the root.
	outside []string
	beyond  int // folders that were not read, as there are too many
	// gone says that a folder disappeared before it was read.
	gone bool
}

// entry is a file to read.
type entry struct {
	path   string
	linked bool  // the name in the folder is a link
	err    error // the file is known to be unreadable, without reading it
}

// walker walks the folder. Each folder on the way is watched before it is read, so
// that no later change in it is missed.
type walker struct {
	tree  tree
	watch func(dir string)
	most  int // folders that are read
}

// walk finds the files below root. It fails if the root is missing or unreadable.
func walk(root string, most int, watch func(dir string)) (*tree, error) {
	w := walker{tree{
		files: map[string]entry{}, places: map[string]string{}, dirs: map[string]string{}, walked: map[string]bool{},
		turns: map[string]bool{},
	}, watch, most}
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
	w.turn(actual) // the root itself may be replaced
	if !info.IsDir() {
		w.tree.single = filepath.Base(abs)
		w.add(w.tree.single, entry{path: actual, linked: true})
		return &w.tree, nil
	}
	w.tree.root = actual
	if err := w.folder(actual, ""); err != nil {
		return nil, err
	}
	return &w.tree, nil
}

// mostFolders bounds the folders that are read, each of which takes a watch of the
// system. Even the whole repository of a large company has fewer.
const mostFolders = 10_000

// inside reports whether a path is the root or lies below it. Only such paths are
// read: a link to another place may lead to a whole disk.
func (w *walker) inside(actual string) bool {
	below, err := filepath.Rel(w.tree.root, actual)
	return err == nil && filepath.IsLocal(below)
}

// turn notes a path that decides where others lead.
func (w *walker) turn(actual string) {
	w.tree.turns[actual] = true
	w.watch(filepath.Dir(actual))
}

func (w *walker) folder(actual, place string) error {
	if _, seen := w.tree.dirs[actual]; seen {
		return nil // a link to a folder that was already walked
	}
	if len(w.tree.dirs) >= w.most {
		w.tree.beyond++
		return nil
	}
	w.tree.dirs[actual], w.tree.walked[place] = place, true
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
		e, mode = w.follow(actual)
		if errors.Is(e.err, errOutside) && mode.IsDir() {
			w.tree.outside = append(w.tree.outside, place)
			return
		}
	}
	switch {
	case mode.IsDir():
		w.subfolder(e.path, place)
	case !isManifest(place):
	case mode.IsRegular():
		w.add(place, e)
	default: // reading a pipe would block
		e.err = errIrregular
		w.add(place, e)
	}
}

var errIrregular = errors.New("not a regular file")

var errOutside = errors.New("it is a symbolic link to a file outside of the folder: copy the file into the folder, or make the other folder a source of its own")

// follow returns the target of a link. A target that is not below the root is not
// read or watched.
func (w *walker) follow(link string) (entry, fs.FileMode) {
	e := entry{path: link, linked: true}
	var turns []string
	target, err := dirwatch.Resolve(link, func(actual string) { turns = append(turns, actual) })
	var mode fs.FileMode
	if err == nil {
		turns = append(turns, target)
		mode, err = typeOf(target)
	}
	for _, actual := range turns {
		if w.inside(actual) {
			w.turn(actual)
		}
	}
	switch {
	case err != nil:
		e.err = err
	case !w.inside(target):
		e.err = errOutside
		return e, mode
	default:
		e.path = target
		return e, mode
	}
	return e, 0
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

// add adds a file, unless it was added under another name.
func (w *walker) add(place string, e entry) {
	if _, taken := w.tree.places[e.path]; taken {
		return
	}
	w.tree.places[e.path] = place
	w.tree.files[place] = e
}

// isManifest reports whether a file is read, by its name.
func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	default:
		return false
	}
}

// concerns reports whether a change at a path may matter. A folder that is watched
// for one name brings many events for other names.
func (t *tree) concerns(actual string) bool {
	_, isDir := t.dirs[actual]
	_, inside := t.dirs[filepath.Dir(actual)]
	return t.turns[actual] || isDir || inside && !strings.HasPrefix(filepath.Base(actual), ".")
}

// covers reports whether a place lies in a folder that could not be read, or was not.
func (t *tree) covers(place string) bool {
	below := func(dir string) bool { return strings.HasPrefix(place, dir+"/") }
	return slices.ContainsFunc(t.blind, below) || slices.ContainsFunc(t.outside, below) || t.beyond > 0 && !t.walked[parent(place)]
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

// parent returns the place of the folder that contains a place.
func parent(place string) string {
	if dir := path.Dir(place); dir != "." {
		return dir
	}
	return ""
}

// bare drops the path from an error that is shown beside it.
func bare(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
