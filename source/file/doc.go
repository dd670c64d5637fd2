// Package file reads a registry that is a folder of Istio manifests.
//
// Every *.yaml, *.yml and *.json below the folder, at any depth, holds
// documents: ServiceEntry, WorkloadEntry, WorkloadGroup and Sidecar objects of
// networking.istio.io become records, objects of other kinds are counted and
// left out, and what is not right is rejected with its file, line, field and
// remedy, while everything beside it goes on. What is right, and what it becomes, is
// decided by package convert/istio; this one follows the files, and knows which
// of several has the word on a name. Names that begin with a
// dot are passed over; links are followed, so the volumes that Kubernetes swaps
// by a link, and checkouts that are swapped the same way, work. The path may
// also name a single file.
//
// The package follows the folder: a file is read when it has been quiet for
// 50 ms, or has been written for 500 ms without end, whatever happens to others.
// Files that are due at about the same time, within 10 ms, are one listing of
// the places concerned. A file that loses an object, or gains one that another
// file has, waits for those that are being written at that moment, so that
// moving an object from one file to another is one step. Whenever the picture may be
// incomplete (several files gone at once, a link swapped, events lost), everything is
// read again and compared by content. Every half minute besides, the files are compared
// by content a few at a time, so that changes with an event do not wait for it; if one
// has changed without, everything is read.
// A file that is gone says what it said until it has been missing for 2 s, but
// for what another file says by then. After that it is missing like anything
// else, so that losing much with it may count as suspicious.
//
// It does not decide what to delete and keeps nothing between runs: see
// package source. What of a folder cannot be read is rejected, and the folder
// itself being gone is an error, never an empty listing.
//
// Inside, reading a text and the question which of two equal names wins are pure
// functions; [Source.Run] is the one goroutine that owns all state, apart from
// the short-lived ones that read files in parallel.
package file
