package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// OpenDisk takes a folder for this process and restores what is saved there.
// Nothing that is wrong with the files fails it: they are set aside, and the
// store begins empty; see [Disk.Restored]. It fails with an [*InUseError] if
// another process has the folder, and if there is no writing to it at all.
//
// [Disk.Run] or [Disk.Close] must follow.
func OpenDisk(cfg DiskConfig) (*Disk, error) {
	d := &Disk{folder: folder(cfg.Dir), memory: NewMemory(cfg.Store), log: cfg.Log, tuning: defaultTuning()}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w; name a folder that can be written to", err)
	}
	var err error
	if d.lock, err = d.folder.lock(); err != nil {
		if inUse, ok := errors.AsType[*InUseError](err); ok {
			return nil, inUse
		}
		return nil, fmt.Errorf("%w; name a folder that can be written to", err)
	}
	d.folder.removeTemporary()
	d.restore()
	return d, nil
}

// restore loads the folder into the store, or sets it aside.
func (d *Disk) restore() {
	files, err := d.folder.list()
	if err != nil {
		d.restored.Damage = &DamageError{File: string(d.folder), Cause: err, Failed: err}
		d.number = int(time.Now().Unix()) // above any there may be
		return
	}
	if len(files) > 0 {
		d.number = files[len(files)-1].number
		loaded, damage := d.load(files)
		if damage != nil {
			d.setAside(files, damage)
		} else {
			all := loaded.records.Map()
			d.memory.restore(loaded.revision, all)
			d.restored.Records, d.restored.Saved = all.Len(), loaded.saved
			d.saving.Saved = d.memory.At()
			d.folder.tidy()
		}
	}
	d.restored.At = d.memory.At()
}

// load reads the newest snapshot and the journals after it.
func (d *Disk) load(files []saved) (*loading, *DamageError) {
	l, snapshot := newLoading(), lastSnapshot(files)
	if snapshot == (saved{}) {
		return nil, &DamageError{File: d.folder.path(files[0].name()), Cause: errors.New("the snapshot it goes on from is missing")}
	}
	for _, f := range files {
		if f.number < snapshot.number {
			continue
		}
		size, err := d.read(l, f)
		if err != nil {
			return nil, &DamageError{File: d.folder.path(f.name()), Cause: err}
		}
		d.restored.Bytes += size
		if f == snapshot {
			d.snapBytes = size
		} else {
			d.journals, d.journalBytes = d.journals+1, d.journalBytes+size
		}
	}
	return l, nil
}

// read reads one file. A journal may have been left by a process that was
// killed before it was synced; what is built upon from now on is put on disk first.
func (d *Disk) read(l *loading, f saved) (size int64, err error) {
	file, err := os.Open(d.folder.path(f.name()))
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
	return info.Size(), file.Sync()
}

func (d *Disk) setAside(files []saved, damage *DamageError) {
	mark := "damaged"
	if _, ok := errors.AsType[*versionError](damage.Cause); ok {
		mark = "newer"
	}
	damage.Moved, damage.Failed = d.folder.setAside(files, mark, time.Now())
	d.restored = Restored{Damage: damage}
	d.snapBytes, d.journals, d.journalBytes = 0, 0, 0
}
