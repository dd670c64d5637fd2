package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// files is a registry of a file of manifests for each service.
type files struct {
	dir  string
	save writer
	// ports are the ports of services that another registry has too, by name. Others have the
	// usual one.
	ports map[string]int
}

var _ medium = (*files)(nil)

// writer writes a file and sets its time.
type writer func(path string, text []byte, at time.Time) error

func newFiles(dir string, save writer) (*files, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the registry: %w", err)
	}
	return &files{dir, save, map[string]int{}}, nil
}

// place is any free port: a manifest says of each endpoint where it is.
func (f *files) place(int, []instance) string { return "127.0.0.1:0" }

func (f *files) port(s service, _ []instance) int { return cmp.Or(f.ports[s.name], port) }

func (f *files) write(s service, all []instance) (time.Time, error) {
	text, at := manifest(s, f.port(s, all), all), time.Now()
	if err := f.save(filepath.Join(f.dir, s.file()), text, at); err != nil {
		return at, fmt.Errorf("writing to the registry: %w", err)
	}
	return at, nil
}

// replaceFile writes a file so that no reader ever sees half of it. Its temporary name
// begins with a dot: such files are no part of a registry. The clock of file systems is
// coarse, so the file gets its time explicitly.
func replaceFile(path string, text []byte, at time.Time) error {
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".draft")
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chtimes(draft, at, at), os.Rename(draft, path))
}

// changed counts the folder itself too: a file may have been removed.
func (f *files) changed(before time.Time) time.Time {
	var newest time.Time
	_ = filepath.WalkDir(f.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // the file was removed meanwhile
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(newest) && info.ModTime().Before(before) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest
}

func (f *files) where(s service, of instance, all []instance) string {
	return fmt.Sprintf("%s:%d", s.file(), lineOf(manifest(s, f.port(s, all), all), of))
}

func (f *files) entry() string { return "- name: files\n  file: {path: ./registry}\n" }

func (f *files) words() words {
	return words{
		registry: "a registry folder",
		at:       f.dir,
		invitation: "edit the files in\n  " + f.dir + "\n" +
			"add or remove an endpoint, break one, and watch what the client sees.",
		read:       "has read three files",
		add:        "%s starts, and a WorkloadEntry for it is added to %s.yaml.",
		remove:     "%s stops at once, then its endpoint is taken out of %s.yaml.",
		spoilTitle: "break a file",
		spoil:      "%s starts, but whoever adds it to %s.yaml mistypes its port.",
		rejection:  "it is rejected, with its line, and its last good version stays",
		fixTitle:   "fix the file",
		fix:        "The port of %s in %s.yaml is put right.",
	}
}

func (f *files) close() {}
