// Package file reads a registry that is a folder of Istio manifests.
//
// Every *.yaml, *.yml and *.json below the folder, at any depth, contains documents.
// Objects of the kinds that package convert/istio reads, and of those that the
// configuration carries, become records. Objects of other kinds are counted and left
// out. An invalid document is rejected with its file, line, field and remedy, while
// everything beside it goes on. Package convert/istio validates documents and makes
// records of them. This package follows the files, and decides which of several files
// owns a name. Names that begin with a dot are skipped. Links are followed. So
// volumes that Kubernetes swaps by a link work, and checkouts swapped the same way.
// The path may also name a single file.
//
// A file is read when it has been quiet for 50 ms, or written for 500 ms without end.
// Events of other files do not matter. Files that are due within 10 ms of each other
// are one listing of the places concerned. A file may lose an object, or gain an
// object of another file. Such a file waits for the files that are being written at
// that moment. So moving an object from one file to another is one step. If the tree
// may be incomplete, everything is read again and compared by content. Causes are
// several files gone at once, a swapped link, and lost events. After that there is a pause
// of the same length, in which single files are still read. Besides, the files are
// compared by content every half minute. This happens a few at a time, so that
// changes with an event do not wait for it. If a file has changed without an event,
// everything is read. A missing file's documents stay for 2 s, except for names that
// another file describes by then. After that its records are missing, so that losing
// many of them may count as suspicious.
//
// The package does not decide which records to delete and keeps nothing between runs:
// see package source. An unreadable part of a folder is rejected. The loss of the
// folder itself is an error, never an empty listing. So is a folder of files that are all
// unreadable.
//
// Package documents, inside, holds the documents of the files and decides who owns a
// name, by pure functions. [Source.Run] is the one goroutine that owns all state, apart
// from short-lived goroutines that read files in parallel.
package file
