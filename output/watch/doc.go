// Package watch serves the records of the store, and the merged services, over gRPC: the service
// isthmus.resource.v1alpha1.ResourceService, which api/isthmus/resource/v1alpha1 describes.
//
// A [watcher] passes on a watch of the store. The rules of that watch hold for its reader: an
// exact snapshot, one end of it, then each commit, with nothing lost and nothing twice. It adds
// three things. The snapshot does not begin before the records are known ([knowledge]). A reader
// outside the root namespace sees merged services that are exported to its namespace, and no
// revisions ([rights]). A message that a reader does not take in time ends its stream.
//
// Merged services are records as well. They are kept in a store of their own, which begins with
// the first reader that asks for them ([merged]). So both groups of kinds have the same watch,
// with the same rules.
//
// Concurrency: each stream has a goroutine that reads the store and one that sends. They share
// the knowledge and the encoded parts of commits, and hold no lock while they wait. A slow reader is a
// position in the history of the store; it costs the others nothing.
package watch
