// Package dirwatch has the system say when something in some folders changes.
// It says no more than that something may have: what has changed, its users find
// out by reading the files again and comparing them with what they were.
//
// Folders are watched, not files. An editor renames another file over the one
// that it was given, and a watch of a file would stay with the old one.
//
// A path is followed through its links, by [Resolve], and the folder of each of
// them is watched too. A volume that Kubernetes mounts for a ConfigMap or a
// Secret is changed by renaming one link, ..data, which stands in no path that
// its files are asked for by; a checkout may be swapped in the same way.
//
// All folders are named anew whenever the files are looked at, to [Watcher.Add]
// before they are read and then [Watcher.Sweep]. So whatever changes after they were read
// is an event, a folder that was replaced by another of the same name is watched
// again, and one that nobody needs any more is not.
//
// Events come late, in bursts, or not at all. A [Debounce] makes one of a burst.
// When the system has lost events, [Watcher.Lost] says so, and everything is to be
// read again. Where it has no watch to give, for there are bounds to how many, or
// where a file system has no events, nothing comes: that is logged, once for a
// folder, and it is no error. So users look again from time to time whatever comes.
//
// A [Watcher] belongs to one goroutine. The one that the system needs ends with
// [Watcher.Close].
package dirwatch
