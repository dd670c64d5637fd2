// Package dirwatch reports that files in some folders may have changed, from events of the
// system. It does not report the changes themselves: its users find them by reading the
// files again and comparing them with the previous content.
//
// Folders are watched, not files. An editor replaces a file by renaming another one over
// it, and a watch of the file would stay with the old one.
//
// A path is followed through its links, by [Resolve], and the folder of each of them is
// watched too. A volume that Kubernetes mounts for a ConfigMap or a Secret is changed by
// renaming one link, ..data, which is in no path of its files. A checkout may be swapped in
// the same way.
//
// All folders are named anew with each look at the files: to [Watcher.Add] before they are
// read, and then [Watcher.Sweep]. A change made after the read is therefore an event. A
// folder that was replaced by another of the same name is watched again, and a folder that
// is no longer needed is not.
//
// Events come late, in bursts, or not at all. A [Debounce] makes one of a burst. When the
// system has lost events, [Watcher.Lost] reports that, and all files have to be read again.
// The number of watches is limited, and some file systems have no events. A folder without
// a watch is logged once, and is no error. Users therefore also look from time to time
// without events.
//
// A [Watcher] belongs to one goroutine. The goroutine of the system's watcher ends with
// [Watcher.Close].
package dirwatch
