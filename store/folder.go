package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A folder holds files numbered in the order they were begun: the newest snapshot, and
// the journals begun after it. The commits of the journals are applied in order. A
// file with a lower number than a whole snapshot is no longer needed. A snapshot gets
// its name when it is whole and on disk.
const (
	snapshotPrefix = "snapshot-"
	journalPrefix  = "journal-"
	temporary      = ".tmp"
	lockName       = "lock"
)

type folder string

// saved is one file of a folder.
type saved struct {
	prefix string
	number int
}

// mostNumber is the highest number of a file: one a second for sixty years do
// not reach it.
const mostNumber = 2_100_000_000

func (f saved) name() string { return fmt.Sprintf("%s%08d", f.prefix, f.number) }

func (d folder) path(name string) string { return filepath.Join(string(d), name) }

// list returns the files that are saved, in the order of their numbers.
func (d folder) list() ([]saved, error) {
	files, _, err := d.read()
	return files, err
}

// read returns the files of list, and also the names that look like saved files and
// are not.
func (d folder) read() (files []saved, strange []string, err error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		switch f, ok := savedAs(e.Name()); {
		case ok && e.Type().IsRegular():
			files = append(files, f)
		case ok || isStrange(e.Name()):
			strange = append(strange, e.Name())
		}
	}
	slices.SortFunc(files, func(a, b saved) int { return a.number - b.number })
	return files, strange, nil
}

// savedAs parses the name of a saved file.
func savedAs(name string) (f saved, ok bool) {
	for _, prefix := range []string{snapshotPrefix, journalPrefix} {
		if digits, found := strings.CutPrefix(name, prefix); found {
			number, err := strconv.Atoi(digits)
			f = saved{prefix, number}
			return f, err == nil && number >= 0 && number <= mostNumber && f.name() == name
		}
	}
	return saved{}, false
}

// isStrange reports whether a name that is not of a saved file consists of a
// prefix and digits. Files that were set aside have more than that.
func isStrange(name string) bool {
	for _, prefix := range []string{snapshotPrefix, journalPrefix} {
		if digits, found := strings.CutPrefix(name, prefix); found {
			return strings.Trim(digits, "-0123456789") == ""
		}
	}
	return false
}

// tidy removes the files before the newest snapshot, and files left half written when
// the process ended. Files that cannot be removed do no harm.
func (d folder) tidy(on files) {
	files, _ := d.list()
	newest := slices.IndexFunc(files, func(f saved) bool { return f == lastSnapshot(files) })
	for _, f := range files[:max(newest, 0)] {
		_ = on.remove(d.path(f.name()))
	}
}

func (d folder) removeTemporary(on files) {
	left, _ := filepath.Glob(d.path(snapshotPrefix + "*" + temporary))
	for _, path := range left {
		_ = on.remove(path)
	}
}

// lastSnapshot returns the newest snapshot; zero if there is none.
func lastSnapshot(files []saved) (last saved) {
	for _, f := range files {
		if f.prefix == snapshotPrefix {
			last = f
		}
	}
	return last
}

// keep gives files a second name, under which they stay when they are removed. The
// same file gets the same second name each time.
func (d folder) keep(on files, files []saved, mark string) (names []string, err error) {
	for _, f := range files {
		info, e := os.Stat(d.path(f.name()))
		if e == nil {
			name := d.path(f.name() + asideSuffix(mark, info.ModTime()))
			if e = on.link(d.path(f.name()), name); e == nil || errors.Is(e, fs.ErrExist) {
				names = append(names, name)
				continue
			}
		}
		err = errors.Join(err, e)
	}
	return names, err
}

func asideSuffix(mark string, at time.Time) string {
	return "." + mark + "-" + at.UTC().Format("20060102T150405.000Z")
}

// setAside renames files so that they are neither read nor removed again.
func (d folder) setAside(on files, files []saved, mark string, now time.Time) (names []string, err error) {
	suffix := asideSuffix(mark, now)
	for _, f := range files {
		name := d.path(f.name() + suffix)
		if e := on.rename(d.path(f.name()), name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
			continue
		}
		names = append(names, name)
	}
	return names, err
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
