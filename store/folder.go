package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What is saved lies in a folder, in files numbered in the order they were
// begun: the newest snapshot, and the journals begun after it, whose commits
// are applied in order. Whatever has a lower number than a whole snapshot is
// no longer needed. A snapshot gets its name when it is whole and on disk.
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

func (f saved) name() string { return fmt.Sprintf("%s%08d", f.prefix, f.number) }

func (d folder) path(name string) string { return filepath.Join(string(d), name) }

// list returns the files that are saved, in the order of their numbers.
func (d folder) list() ([]saved, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var files []saved
	for _, e := range entries {
		for _, prefix := range []string{snapshotPrefix, journalPrefix} {
			digits, ok := strings.CutPrefix(e.Name(), prefix)
			number, err := strconv.Atoi(digits)
			if f := (saved{prefix, number}); ok && err == nil && f.name() == e.Name() {
				files = append(files, f)
			}
		}
	}
	slices.SortFunc(files, func(a, b saved) int { return a.number - b.number })
	return files, nil
}

// tidy removes what lies before the newest snapshot, and what was being
// written when the process ended. What cannot be removed does no harm.
func (d folder) tidy() {
	files, _ := d.list()
	newest := slices.IndexFunc(files, func(f saved) bool { return f == lastSnapshot(files) })
	for _, f := range files[:max(newest, 0)] {
		_ = os.Remove(d.path(f.name()))
	}
}

func (d folder) removeTemporary() {
	left, _ := filepath.Glob(d.path(snapshotPrefix + "*" + temporary))
	for _, path := range left {
		_ = os.Remove(path)
	}
}

// lastSnapshot is zero if there is none.
func lastSnapshot(files []saved) (last saved) {
	for _, f := range files {
		if f.prefix == snapshotPrefix {
			last = f
		}
	}
	return last
}

// sync puts the names of the folder's files on disk.
func (d folder) sync() error {
	if runtime.GOOS == "windows" {
		return nil // knows no such thing
	}
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// keep gives files a second name, under which they stay when they are removed.
// The same file gets the same one each time.
func (d folder) keep(files []saved, mark string) (names []string, err error) {
	for _, f := range files {
		info, e := os.Stat(d.path(f.name()))
		if e == nil {
			name := d.path(f.name() + asideSuffix(mark, info.ModTime()))
			if e = os.Link(d.path(f.name()), name); e == nil || errors.Is(e, fs.ErrExist) {
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
func (d folder) setAside(files []saved, mark string, now time.Time) (names []string, err error) {
	suffix := asideSuffix(mark, now)
	for _, f := range files {
		name := d.path(f.name() + suffix)
		if e := os.Rename(d.path(f.name()), name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
			continue
		}
		names = append(names, name)
	}
	return names, err
}
