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
// The store does not know of it. It is a watcher of the replica as any other, so a slow disk
// or a full one costs what a slow watcher costs, and nobody waits for it.
//
// # What is promised
//
// A commit is on disk within a second on a disk that keeps up: commits are
// gathered for a fifth of that, then written and synced as one. When the disk
// fails, what is on it stays good, and saving is tried again for as long as it
// takes. What a process saved before it was killed is restored up to a whole
// commit, and so is what comes before damage. A new snapshot is written beside the journal when the journal has
// become longer than the last one, so a commit costs its own size, however
// much is stored. Only a commit, or a lag, of more than [Config.History] events
// takes a snapshot of everything before later commits are saved.
//
// Revisions go on from the last one saved. Those of commits that were lost,
// being younger than the bound, are given out again; they cannot be mistaken
// for each other, as each start is an epoch of its own.
type Disk struct {
	folder   folder
	memory   *Memory  // what was saved is restored into
	replica  *Replica // what is saved: its
	log      *slog.Logger
	restored Restored
	tuning   tuning

	lock     *os.File
	released sync.Once

	// Of the goroutine in Run.
	number       int   // of the newest file
	journals     int   // begun since the last snapshot
	journalBytes int64 // in them
	snapBytes    int64 // in the last snapshot

	mu     sync.Mutex // guards saving
	saving Saving
}

// DiskConfig says where and how a store is kept.
type DiskConfig struct {
	Dir   string // created if there is none
	Store Config
	Log   *slog.Logger
}

// tuning is what tests change.
type tuning struct {
	gather      time.Duration // how long commits are gathered before they are synced
	beat        time.Duration // how often the time is noted when nothing happens
	backoff     wait.Backoff  // between saves while the disk fails
	drain       time.Duration // how long saving may go on after Run has to end
	minJournal  int64         // bytes of journals that are not worth a new snapshot
	maxJournals int
	create      func(path string) (file, error)
}

func defaultTuning() tuning {
	return tuning{
		gather: 200 * time.Millisecond, beat: time.Minute,
		backoff: wait.Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second}, drain: 10 * time.Second,
		minJournal: 8 << 20, maxJournals: 16,
		create: createFile,
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

// Saving says how far saving has come.
type Saving struct {
	// Saved is the newest moment that is on disk; zero before the first.
	Saved model.At
	// Pending is when the oldest commit was made that is not on disk; zero if all are.
	Pending time.Time
	// Err is why saving does not work now, since when, and how often it failed
	// in all.
	Err      error
	Since    time.Time
	Failures uint64
}

// Lag is for how long there has been something that is not on disk.
func (s Saving) Lag(now time.Time) time.Duration {
	if s.Pending.IsZero() {
		return 0
	}
	return max(now.Sub(s.Pending), 0)
}

// Saving says how far saving has come. It may be called from anywhere.
func (d *Disk) Saving() Saving {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.saving
}

func (d *Disk) report(change func(*Saving)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.saving)
}
