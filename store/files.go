package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// files changes a folder and syncs the changes to disk. A fake in the tests forgets
// unsynced changes at a power failure.
type files interface {
	mkdir(path string) error
	create(path string) (file, error) // fails if there is such a file
	rename(from, to string) error
	link(from, to string) error
	remove(path string) error
	// sync puts the content of a file, or the names in a folder, on disk.
	sync(path string) error
}

// file is a file that is written.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// diskFiles are the files of the operating system.
type diskFiles struct{}

func (diskFiles) mkdir(path string) error      { return os.Mkdir(path, 0o700) }
func (diskFiles) rename(from, to string) error { return os.Rename(from, to) }
func (diskFiles) link(from, to string) error   { return os.Link(from, to) }
func (diskFiles) remove(path string) error     { return os.Remove(path) }

func (diskFiles) create(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

func (diskFiles) sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// make creates the folder and its missing parents and syncs all of their names. A
// killed process may have created a parent without syncing it. A parent that cannot be
// read existed before.
func (d folder) make(files files) error {
	if err := d.mkdir(files); err != nil {
		return err
	}
	for at := string(d); at != filepath.Dir(at); at = filepath.Dir(at) {
		_ = folder(filepath.Dir(at)).sync(files)
	}
	return nil
}

func (d folder) mkdir(files files) error {
	err := files.mkdir(string(d))
	if above := folder(filepath.Dir(string(d))); errors.Is(err, fs.ErrNotExist) && above != d {
		if err := above.mkdir(files); err != nil {
			return err
		}
		err = files.mkdir(string(d))
	}
	if info, statErr := os.Stat(string(d)); statErr == nil && info.IsDir() {
		return nil // the folder may have existed
	}
	return err
}

// sync puts the names of the folder's files on disk.
func (d folder) sync(files files) error {
	if runtime.GOOS == "windows" {
		return nil // Windows cannot sync a folder
	}
	return files.sync(string(d))
}
