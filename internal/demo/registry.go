package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// registry is a folder with a file of manifests for each service. It belongs
// to one goroutine at a time, but changed may be called by any.
type registry struct {
	dir       string
	write     writer
	instances map[string][]instance // by service, as they are to be in its file
}

// writer writes a file and has it say when.
type writer func(path string, text []byte, at time.Time) error

func newRegistry(dir string, write writer) (*registry, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the registry: %w", err)
	}
	return &registry{dir: dir, write: write, instances: map[string][]instance{}}, nil
}

// put adds an instance to a service, or replaces the one of its name.
func (r *registry) put(s service, i instance) {
	r.drop(s, i.name)
	r.instances[s.name] = append(r.instances[s.name], i)
}

func (r *registry) drop(s service, name string) {
	r.instances[s.name] = slices.DeleteFunc(r.instances[s.name], func(i instance) bool { return i.name == name })
}

// save writes the file of a service, and returns when it did.
func (r *registry) save(s service) (time.Time, error) {
	text, at := manifest(s, r.instances[s.name]), time.Now()
	if err := r.write(filepath.Join(r.dir, s.file()), text, at); err != nil {
		return at, fmt.Errorf("writing to the registry: %w", err)
	}
	return at, nil
}

// replaceFile writes a file so that nobody ever reads half of it. The name it
// has until then begins with a dot: such files are no part of a registry. The
// clock that file systems go by is coarse, so the file is told its time.
func replaceFile(path string, text []byte, at time.Time) error {
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".draft")
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chtimes(draft, at, at), os.Rename(draft, path))
}

// changed is when something in the folder last changed before a time, whether
// by the demo or by somebody who plays with it. The folder itself counts too: a
// file may have been removed.
func (r *registry) changed(before time.Time) time.Time {
	var newest time.Time
	_ = filepath.WalkDir(r.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away meanwhile
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(newest) && info.ModTime().Before(before) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest
}
