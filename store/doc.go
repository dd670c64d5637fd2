// Package store holds every record of Isthmus and notifies watchers of every change,
// in order and without gaps.
//
// # Place
//
// Sources commit, through their supervisor; the catalog and every other reader lists
// and watches. The store treats all kinds of records alike: it keeps the
// [model.Record] envelope, and only its readers look into the spec. It derives
// nothing, merges nothing, and never decides that a record is to be deleted.
//
// # Two halves
//
// A [Memory] decides commits: it compares writes with the stored records, gives a
// commit its revision, and applies it to its [Replica]. Lists and watches read the
// replica alone. [Memory.Commit] returns once the replica has the commit.
//
// # Writing
//
// A [model.Commit] takes effect whole or not at all and has one revision, which all
// its records carry. Every write is compare-and-set; a writer that worked from an
// outdated record gets a [*ConflictError] with the stored version. A write that
// changes nothing causes no event, and a commit in which nothing changes gets no
// revision of its own.
//
// Revisions start at 1, only grow, and have no gaps. Revisions compare within one
// epoch, a number that [model.EndOfSnapshot] carries. The epoch changes whenever the
// history may have changed: at each start and each restore.
//
// # Reading
//
// [Replica.Get] and [Replica.List] read one consistent revision. A watch is one
// stream: the snapshot, [model.EndOfSnapshot] with its revision, then each later
// commit as one [model.Batch], for ever. [model.Reset] means that the reader lags too
// far behind to be sent the missed commits. The reader drops its records, and a new
// snapshot follows on the same stream. Once a watch has delivered a commit, lists
// contain it as well.
//
// A reader that reconnects names its epoch and revision. It is sent exactly the missed
// commits, or is reset: [Replica.WatchFrom].
//
// # Memory
//
// A record is in memory once. Commits are kept for watchers that lag, once for all
// watchers, up to [Config.History] events and [Config.HistoryBytes]. A watcher is a
// position in that history and has no queue of its own. The cost of a slow watcher is
// therefore bounded, and others do not notice it. While it reads its snapshot a
// watcher also keeps the records of that revision.
//
// # Disk
//
// A replica does not write to disk. [Disk] is a watcher that saves the last known good
// of a replica in a folder. At the next start it restores the store from there.
//
// # Concurrency
//
// Every function here may be used by any number of goroutines. Commits wait for one
// another; readers take no lock and wait for no commit. No lock is held while a watch
// or a list yields, so its reader may take its time, commit, or open another watch. A
// [Memory] starts no goroutine and needs no closing.
//
// The rules that each store must keep are tests in package storetest.
package store
