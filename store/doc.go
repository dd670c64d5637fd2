// Package store holds every record Isthmus knows and tells watchers about
// every change, in order, with nothing lost.
//
// # Place
//
// Sources commit, through their supervisor; the catalog and every other reader
// lists and watches. The store treats all kinds of records alike: it keeps the
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
// A [model.Commit] takes effect whole or not at all and has one revision, which
// all its records carry. Every write is compare-and-set; a writer that worked
// from an outdated record gets a [*ConflictError] that says what is stored
// instead. A write that changes nothing causes no event, and a commit in which
// nothing changes gets no revision of its own.
//
// Revisions start at 1, only grow, and have no gaps. Revisions compare within one epoch, a number that
// [model.EndOfSnapshot] carries. The epoch changes whenever the history may have
// changed: at each start and each restore.
//
// # Reading
//
// [Replica.Get] and [Replica.List] read one consistent revision. A watch is one
// stream: the snapshot, [model.EndOfSnapshot] with its revision, then each
// later commit as one [model.Batch], for ever. [model.Reset] means that the reader
// lags too far behind to be given what it missed. The reader drops what it holds, and
// a new snapshot follows on the same stream. Once a watch has delivered a commit,
// lists have it as well.
//
// A reader that reconnects names the epoch and revision that it holds, and is given
// exactly what it missed, or is reset: [Replica.WatchFrom].
//
// # Memory
//
// A record is in memory once. Commits are kept for watchers that lag, once for all
// of them, up to [Config.History] events and [Config.HistoryBytes]. A watcher is a position in that history
// and has no queue of its own. So the cost of a slow watcher is bounded, and
// others do not notice it. While it reads its snapshot a watcher also keeps the
// records of that revision.
//
// # Disk
//
// A replica does not write to disk. [Disk] is a watcher that saves the last known
// good of a replica in a folder. At the next start it restores the store from there.
//
// # Concurrency
//
// Everything here may be used by any number of goroutines. Commits wait for
// one another; readers take no lock and wait for nobody. Nothing is locked
// while a watch or a list yields, so its reader may take its time, commit, or
// open another watch. A [Memory] starts no goroutine and needs no closing.
//
// The rules that each store must keep are tests in package storetest.
package store
