package store

import (
	"errors"
	"os"
	"slices"
)

// load reads the newest readable snapshot and the journals after it, up to the first
// unreadable one. It returns nil if there is no such snapshot.
func (a *archive) load(files []saved) (*loading, *DamageError) {
	l, snapshot, damage := a.loadSnapshot(files)
	if l == nil {
		return nil, damage
	}
	for i, f := range files {
		if f.number <= snapshot.number || f.prefix != journalPrefix {
			continue
		}
		size, err := a.read(l, f)
		if err != nil {
			return l, a.lost(l, files[i:], err, damage)
		}
		a.journals, a.journalBytes = a.journals+1, a.journalBytes+size
	}
	return l, damage
}

// loadSnapshot reads the newest readable snapshot. Older snapshots exist only if the
// process ended before it removed them.
func (a *archive) loadSnapshot(files []saved) (l *loading, snapshot saved, damage *DamageError) {
	for _, f := range slices.Backward(files) {
		if f.prefix != snapshotPrefix {
			continue
		}
		l = newLoading()
		size, err := a.read(l, f)
		if err == nil {
			a.snapBytes = size
			a.snapshot, _ = os.Lstat(a.folder.path(f.name()))
			return l, f, damage
		}
		if damage == nil {
			damage = &DamageError{File: a.folder.path(f.name()), Cause: err}
		}
		damage.files = append(damage.files, f)
	}
	if damage == nil {
		damage = &DamageError{File: a.folder.path(files[0].name()), Cause: errors.New("the snapshot it goes on from is missing")}
	}
	return nil, saved{}, damage
}

// read reads one file. A killed process may have left a journal unsynced. Later
// commits build upon the journal, so it is synced first.
func (a *archive) read(l *loading, f saved) (size int64, err error) {
	file, err := os.Open(a.folder.path(f.name()))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if f.prefix == snapshotPrefix {
		return info.Size(), l.snapshot(file, info.Size())
	}
	if err := l.journal(file, info.Size()); err != nil {
		return 0, err
	}
	return info.Size(), a.files.sync(a.folder.path(f.name()))
}

// lost records the damage of a journal that could not be read. The journals after it
// continue from its commits, so they are lost, too. before is the damage of a
// snapshot; it may be nil.
func (a *archive) lost(l *loading, files []saved, cause error, before *DamageError) *DamageError {
	damage := before
	if damage == nil {
		damage = &DamageError{File: a.folder.path(files[0].name()), Cause: cause}
	}
	damage.Lost = &Lost{Revision: l.revision, Offset: l.whole, Since: l.saved}
	for i, f := range files {
		if f.prefix != journalPrefix {
			continue
		}
		from := int64(0)
		if i == 0 {
			from = l.whole
		}
		damage.files = append(damage.files, f)
		if content, err := os.ReadFile(a.folder.path(f.name())); err == nil {
			damage.Lost.count(content[min(from, int64(len(content))):])
		}
	}
	return damage
}
