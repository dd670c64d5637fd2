package store

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
)

// Disk keeps the last known good of a store in a folder. [OpenDisk] makes a Disk and
// restores the saved records. [Disk.Run] saves every later commit.
//
// The store does not know its Disk. A Disk is an ordinary watcher of the replica. A
// disk that is slow, full or hanging therefore costs as much as a slow watcher, and no
// commit or reader waits for it.
//
// # Guarantees
//
// Each commit is handed to the operating system by itself, as soon as it is made. A
// process that is killed loses at most the commit that was just being written. The
// operating system is asked every fifth of a second to sync the written commits to
// disk. A machine that loses its power loses the commits since the last sync. When the
// disk fails, the files on it stay valid, and saving is retried until it succeeds.
// Saved commits are restored up to a whole commit, and so are the commits before
// damage.
//
// A new snapshot is written beside the journal when the journal has become longer than
// the last snapshot. A commit therefore costs its own size, however many records are
// stored. The store's history keeps the commits that wait for the disk. A commit or a
// lag larger than the history, see [Config], takes a snapshot of everything before
// later commits are saved.
//
// Revisions continue from the last saved one. The revisions of lost commits are used
// again. They cannot be mistaken for each other, as each start is an epoch of its own.
//
// # The folder
//
// The folder belongs to one process. If it is removed or replaced while the process
// runs, it is created again and everything is saved anew. If another process has
// locked it by then, the other process keeps it, and this one reports that until it is
// free.
type Disk struct {
	archive
	memory   *Memory  // restored from the files
	replica  *Replica // of memory; its commits are saved
	restored Restored
	tuning   tuning
	progress progress
	// from is the saved moment that saving continues from; zero if a snapshot has to come
	// first. The goroutine that saves owns it, and the archive.
	from model.At
}

// DiskConfig configures the folder of a store.
type DiskConfig struct {
	Dir   string // created if there is none
	Store Config
	Log   *slog.Logger
	// Listed returns the sources with records older than the newest state, and when each
	// was listed last. The times are saved as well; nil if they are unknown.
	Listed func() map[string]time.Time
	// Remade is called when the folder was removed or replaced and is created and locked
	// again. The caller can then put its own files there. Remade may be nil.
	Remade func()
}

// tuning holds the durations and sizes that tests change.
type tuning struct {
	gather      time.Duration // how long commits are gathered before they are synced
	look        time.Duration // how often the folder is checked when no commit comes
	beat        time.Duration // how often the time is saved when no commit comes
	slow        time.Duration // the lag from which on the disk is reported as slow
	backoff     wait.Backoff  // between saves while the disk fails
	drain       time.Duration // how long saving may continue after Run has to end
	lock        time.Duration // how long to wait for a process that has locked the folder
	minJournal  int64         // bytes of journals below which no new snapshot is written
	maxJournals int
}

func defaultTuning() tuning {
	return tuning{
		gather: 200 * time.Millisecond, look: 5 * time.Second, beat: time.Minute, slow: 10 * time.Second,
		backoff: wait.Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second}, drain: 10 * time.Second, lock: 2 * time.Second,
		minJournal: 8 << 20, maxJournals: 16,
	}
}

// Restored describes the state restored from disk.
type Restored struct {
	// At is the moment the store began with; its revision is zero if nothing was saved.
	At      model.At
	Records int
	Bytes   int64
	// Saved is when this state was last known to be the newest; zero if nothing was
	// saved.
	Saved time.Time
	// Listed is when the sources with records older than Saved were listed last.
	Listed map[string]time.Time
	// Strange names the files that look like saved files but that no Isthmus would name
	// so. They are neither read nor removed.
	Strange []string
	// Damage describes the files that are not used, and why; nil if all are used. The
	// restored state is whole, but older than the saved one. Which sources lack records
	// is unknown.
	Damage *DamageError
}

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
	d := &Disk{
		archive: archive{folder: folder(cfg.Dir), files: files, log: cfg.Log, listed: cfg.Listed, remade: cfg.Remade},
		memory:  memory, replica: memory.Replica, tuning: tuning,
	}
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
			damage.Moved, damage.Failed = d.folder.setAside(d.files, files, damage.mark(), time.Now())
			d.restored.Damage = damage
			d.forget()
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
	d.restored = Restored{Records: all.Len(), Bytes: d.snapBytes + d.journalBytes, Saved: loaded.saved, Listed: loaded.listed, Damage: damage}
	if damage != nil {
		damage.Moved, damage.Failed = d.folder.keep(d.files, damage.files, damage.mark())
	} else if d.snapshot != nil && d.folder.sync(d.files) == nil { // a killed process may not have synced it
		d.progress.restored(d.replica.At())
		d.folder.tidy(d.files)
		return
	}
	d.forget()
}

// Store returns the store.
func (d *Disk) Store() *Memory { return d.memory }

// Restored describes the state restored from disk.
func (d *Disk) Restored() Restored { return d.restored }

// Dir returns the folder.
func (d *Disk) Dir() string { return string(d.folder) }

// Close unlocks the folder. [Disk.Run] does so at its end.
func (d *Disk) Close() { d.release() }

// Saving returns the progress of saving. It may be called from any goroutine.
func (d *Disk) Saving() Saving { return d.progress.read() }
