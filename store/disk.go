package store

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/model"
)

// Disk keeps the last known good of a store in a folder: it restores what was
// saved when it is opened, and saves every later commit while it runs. Make
// one with [OpenDisk].
//
// The store does not know of it. It is a watcher of the replica as any other, so a slow disk,
// a full one, or one that hangs costs what a slow watcher costs, and nobody waits for it.
//
// # What is promised
//
// Each commit is handed to the operating system by itself, as soon as it is made.
// A process that is killed loses the commit that was just being written, if any.
// The operating system is asked every fifth of a second to put on disk what it was
// handed. A machine that loses its power loses what was committed since. When the disk
// fails, what is on it stays good, and saving is tried again for as long as it
// takes. What was saved is restored up to a whole
// commit, and so is what comes before damage.
//
// A new snapshot is written beside the journal when the journal has
// become longer than the last one, so a commit costs its own size, however
// much is stored. Commits that wait for the disk are those of the store's history.
// Only a commit, or a lag, of more than that, see [Config],
// takes a snapshot of everything before later commits are saved.
//
// Revisions go on from the last one saved. Those of commits that were lost are
// given out again; they cannot be mistaken for each other, as each start is an
// epoch of its own.
//
// # The folder
//
// It belongs to one process. If it is removed or replaced while the process
// runs, it is made again and everything is saved anew. If another process has it by
// then, that one keeps it, and this one says so for as long as it lasts.
type Disk struct {
	folder   folder
	memory   *Memory  // what was saved is restored into
	replica  *Replica // what is saved: its
	log      *slog.Logger
	listed   func() map[string]time.Time
	remade   func()
	restored Restored
	tuning   tuning
	files    files

	lock     *os.File
	released sync.Once

	// Of the goroutine that saves.
	from         model.At    // the moment that the files have, which saving goes on from; zero if a snapshot has to come
	number       int         // of the newest file
	snapshot     os.FileInfo // the last one; nil if there is none
	journals     int         // begun since the last snapshot
	journalBytes int64       // in them
	snapBytes    int64       // in the last snapshot
	left         leftover

	progress progress
}

// DiskConfig says where and how a store is kept.
type DiskConfig struct {
	Dir   string // created if there is none
	Store Config
	Log   *slog.Logger
	// Listed returns when the sources were listed last whose records are older
	// than what is saved now. It is saved as well; nil if nobody knows.
	Listed func() map[string]time.Time
	// Remade is called when the folder was removed or replaced, and is made and locked again,
	// so that the caller can put its own files there; may be nil.
	Remade func()
}

// tuning is what tests change.
type tuning struct {
	gather      time.Duration // how long commits are gathered before they are synced
	look        time.Duration // how often the folder is looked at when nothing happens
	beat        time.Duration // how often the time is noted when nothing happens
	slow        time.Duration // from which lag on the disk is reported as slow
	backoff     wait.Backoff  // between saves while the disk fails
	drain       time.Duration // how long saving may go on after Run has to end
	lock        time.Duration // how long to wait for a process that has the folder
	minJournal  int64         // bytes of journals that are not worth a new snapshot
	maxJournals int
}

func defaultTuning() tuning {
	return tuning{
		gather: 200 * time.Millisecond, look: 5 * time.Second, beat: time.Minute, slow: 10 * time.Second,
		backoff: wait.Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second}, drain: 10 * time.Second, lock: 2 * time.Second,
		minJournal: 8 << 20, maxJournals: 16,
	}
}

// Restored says what was found on disk.
type Restored struct {
	// At is the moment the store began with; its revision is zero if nothing was saved.
	At      model.At
	Records int
	Bytes   int64
	// Saved is when this was last known to be the newest; zero if nothing was saved.
	Saved time.Time
	// Listed is when the sources were listed last whose records are older than that.
	Listed map[string]time.Time
	// Strange names the files that look like saved ones, and are not: no Isthmus
	// gives such a name. They are neither read nor removed.
	Strange []string
	// Damage says what of the files is not used, and why; nil if all is. What is
	// used nevertheless is whole, but older than what was saved: nobody can tell
	// of which sources something is missing.
	Damage *DamageError
}

// Store returns the store.
func (d *Disk) Store() *Memory { return d.memory }

// Restored says what was found on disk.
func (d *Disk) Restored() Restored { return d.restored }

// Close lets go of the folder. [Disk.Run] does so at its end.
func (d *Disk) Close() { d.released.Do(func() { releaseLock(d.lock) }) }

// Saving says how far saving has come. It may be called from anywhere.
func (d *Disk) Saving() Saving { return d.progress.read() }

// mark is a mark of now, for a file of which so much is on disk.
func (d *Disk) mark(synced int64) timeMark {
	var listed map[string]time.Time
	if d.listed != nil {
		listed = d.listed()
	}
	return newTimeMark(time.Now(), synced, listed)
}
