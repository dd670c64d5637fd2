package store

import (
	"log/slog"
	"os"
	"sync"
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
	folder   folder
	memory   *Memory  // restored from the files
	replica  *Replica // of memory; its commits are saved
	log      *slog.Logger
	listed   func() map[string]time.Time
	remade   func()
	restored Restored
	tuning   tuning
	files    files

	lock     *os.File
	released sync.Once

	// The fields of the goroutine that saves.
	from         model.At    // the saved moment that saving continues from; zero if a snapshot has to come first
	number       int         // of the newest file
	snapshot     os.FileInfo // the last one; nil if there is none
	journals     int         // number of journals begun since the last snapshot
	journalBytes int64       // in these journals
	snapBytes    int64       // in the last snapshot
	left         leftover

	progress progress
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

// Store returns the store.
func (d *Disk) Store() *Memory { return d.memory }

// Restored describes the state restored from disk.
func (d *Disk) Restored() Restored { return d.restored }

// Close unlocks the folder. [Disk.Run] does so at its end.
func (d *Disk) Close() { d.released.Do(func() { releaseLock(d.lock) }) }

// Saving returns the progress of saving. It may be called from any goroutine.
func (d *Disk) Saving() Saving { return d.progress.read() }

// mark returns a time mark of now, for a file of which synced bytes are on disk.
func (d *Disk) mark(synced int64) timeMark {
	var listed map[string]time.Time
	if d.listed != nil {
		listed = d.listed()
	}
	return newTimeMark(time.Now(), synced, listed)
}
