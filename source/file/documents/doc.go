// Package documents holds the documents of a folder's files, and decides which of
// several files owns a name. It is pure: it reads no file and no clock.
//
// A [Version] is one reading of a file; it never changes. A [Set] holds the newest
// version of each file, takes new versions, and returns the places with a changed
// listing. A file keeps a name for as long as it describes the object, also while the
// file is missing for a moment or a part of it cannot be understood.
//
// Concurrency: a [Set] belongs to one goroutine. A [Version] may be shared.
package documents
