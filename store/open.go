package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

// OpenDisk locks a folder for this process and restores its saved records. Damaged
// files do not fail it: the store begins with their readable part, up to a whole
// commit; see [Disk.Restored]. A process that has the lock may be ending: OpenDisk
// waits two seconds for it, and then fails with an [*InUseError]. It also fails if the
// folder cannot be written to at all.
//
// [Disk.Run] or [Disk.Close] must follow.
func OpenDisk(cfg DiskConfig) (*Disk, error) { return openDisk(cfg, defaultTuning(), diskFiles{}) }

func openDisk(cfg DiskConfig, tuning tuning, files files) (*Disk, error) {
	memory := NewMemory(cfg.Store)
	d := &Disk{folder: folder(cfg.Dir), memory: memory, replica: memory.Replica, log: cfg.Log, listed: cfg.Listed, remade: cfg.Remade, tuning: tuning, files: files}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if err := d.folder.make(files); err != nil {
		return nil, fmt.Errorf("%w; name a folder that can be written to", err)
	}
	var err error
	if d.lock, err = d.folder.lock(tuning.lock, d.log); err != nil {
		if inUse, ok := errors.AsType[*InUseError](err); ok {
			return nil, inUse
		}
		return nil, fmt.Errorf("%w; name a folder that can be written to", err)
	}
	d.folder.removeTemporary(files)
	d.restore()
	return d, nil
}

// restore loads the readable part of the folder. Damaged files are kept for a report
// and superseded by a new snapshot. If no snapshot can be read, all files are set
// aside.
func (d *Disk) restore() {
	files, strange, err := d.folder.read()
	if err != nil {
		d.restored.Damage = &DamageError{File: string(d.folder), Cause: err, Failed: err}
		d.number = int(time.Now().Unix()) // above any existing number
		return
	}
	if len(files) > 0 {
		d.number = files[len(files)-1].number
		loaded, damage := d.load(files)
		if loaded == nil {
			d.setAside(files, damage)
		} else {
			d.use(loaded, damage)
		}
	}
	d.restored.At, d.restored.Strange = d.replica.At(), strange
	d.from = d.Saving().Saved
}

// use makes the loaded records the store's content. Saving continues from them, unless
// they were damaged or cannot be synced: saving then begins with a snapshot.
func (d *Disk) use(loaded *loading, damage *DamageError) {
	all := loaded.records.Map()
	d.memory.restore(loaded.revision, "the last known good was restored", all)
	d.restored.Records, d.restored.Saved, d.restored.Listed, d.restored.Damage = all.Len(), loaded.saved, loaded.listed, damage
	if damage != nil {
		damage.Moved, damage.Failed = d.folder.keep(d.files, damage.files, damage.mark())
	} else if d.snapshot != nil && d.folder.sync(d.files) == nil { // a killed process may not have synced it
		d.progress.restored(d.replica.At())
		d.folder.tidy(d.files)
		return
	}
	d.snapshot, d.snapBytes, d.journals, d.journalBytes = nil, 0, 0, 0
}

// load reads the newest readable snapshot and the journals after it, up to the first
// unreadable one. It returns nil if there is no such snapshot.
func (d *Disk) load(files []saved) (*loading, *DamageError) {
	l, snapshot, damage := d.loadSnapshot(files)
	if l == nil {
		return nil, damage
	}
	for i, f := range files {
		if f.number <= snapshot.number || f.prefix != journalPrefix {
			continue
		}
		size, err := d.read(l, f)
		if err != nil {
			return l, d.lost(l, files[i:], err, damage)
		}
		d.restored.Bytes += size
		d.journals, d.journalBytes = d.journals+1, d.journalBytes+size
	}
	return l, damage
}

// loadSnapshot reads the newest readable snapshot. Older snapshots exist only if the
// process ended before it removed them.
func (d *Disk) loadSnapshot(files []saved) (l *loading, snapshot saved, damage *DamageError) {
	for _, f := range slices.Backward(files) {
		if f.prefix != snapshotPrefix {
			continue
		}
		l = newLoading()
		size, err := d.read(l, f)
		if err == nil {
			d.restored.Bytes, d.snapBytes = size, size
			d.snapshot, _ = os.Lstat(d.folder.path(f.name()))
			return l, f, damage
		}
		if damage == nil {
			damage = &DamageError{File: d.folder.path(f.name()), Cause: err}
		}
		damage.files = append(damage.files, f)
	}
	if damage == nil {
		damage = &DamageError{File: d.folder.path(files[0].name()), Cause: errors.New("the snapshot it goes on from is missing")}
	}
	return nil, saved{}, damage
}

// read reads one file. A killed process may have left a journal unsynced. Later
// commits build upon the journal, so it is synced first.
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
	return info.Size(), d.files.sync(d.folder.path(f.name()))
}

func (d *Disk) setAside(files []saved, damage *DamageError) {
	damage.Moved, damage.Failed = d.folder.setAside(d.files, files, damage.mark(), time.Now())
	d.restored = Restored{Damage: damage}
	d.snapshot, d.snapBytes, d.journals, d.journalBytes = nil, 0, 0, 0
}
