// Package store holds every record Isthmus knows and tells watchers about
// every change, in order, with nothing lost.
//
// # Place
//
// Sources commit, through their supervisor; the catalog and every other reader
// lists and watches. The store knows no kind better than another: it keeps the
// [model.Record] envelope, and what the specification says is its readers'
// business. It derives nothing, merges nothing and decides nothing to delete.
//
// # Two halves
//
// A decider of commits and a [Replica] that is fed. The decider compares writes
// with what is stored and gives a commit its revision; a [Feed] takes the commit
// to the replica; lists and watches know the replica alone. [Memory] is both in
// one process. A store that decides elsewhere, such as in a database that many
// processes share, feeds its replicas with the revisions and the epoch of that
// database, and its Commit returns once the local replica has applied the
// commit ([Replica.Wait]). So watchers share one code path.
//
// # Writing
//
// A [model.Commit] takes effect whole or not at all and has one revision, which
// all its records carry. Every write is compare-and-set; a writer that worked
// from an outdated record gets a [*ConflictError] that says what is stored
// instead. A write that says nothing new is no event, and a commit in which
// nothing changes has no revision of its own.
//
// Revisions only grow; those of a [Memory] start at 1 and are dense, those of
// other deciders may leave gaps. They compare within one epoch, a number that
// [model.EndOfSnapshot] carries. It is another one whenever the past may be
// another: with a [Memory], at each start and each restore.
//
// # Reading
//
// [Replica.Get] and [Replica.List] read one consistent revision. A watch is one
// stream: the snapshot, [model.EndOfSnapshot] with its revision, then each
// later commit as one [model.Batch], for ever. [model.Reset] says that the
// reader lagged too far behind to be given what it missed; it drops what it
// holds, and a new snapshot follows on the same stream. What a watch has delivered
// can be read at once.
//
// A reader that was away may come back with the moment it holds, and is given
// exactly what it missed, or is reset: [Replica.WatchFrom].
//
// # Memory
//
// A record is held once. Commits are kept for watchers that lag, once for all
// of them, up to [Config.History] events; a watcher is a place in that history
// and has no queue of its own. So the cost of a slow watcher is bounded, and
// others do not notice it. While it reads its snapshot a watcher also keeps the
// records of that revision.
//
// # Disk
//
// A replica knows no disk. [Disk] is a watcher that keeps the last known good
// of one in a folder, and restores it at the next start, by the same feed.
//
// # Concurrency
//
// Everything here may be used by any number of goroutines. Commits wait for
// one another; readers take no lock and wait for nobody. Nothing is locked
// while a watch or a list yields, so its reader may take its time, commit, or
// open another watch. A [Memory], a [Replica] and a [Feed] start no goroutine
// and need no closing.
//
// The rules that each store and each replica must keep are tests in package storetest.
package store
