// Package catalog merges the records of every source into services.
//
// A service is a (namespace, host). Records unite inside that key and nowhere
// else: the definition comes from the first source in the configured order,
// ports unite by number, endpoints by address and port with the first source's
// attributes, and an endpoint is gone when it is gone from every source. A
// record whose resolution contradicts the first one's is left out of the
// service. Every such decision is a [Conflict] that can be shown.
//
// Beside the services stand, from their own records, scopes, which services each
// consumer uses, and objects that are carried without being understood. What
// registries know of a consumer adds up; of a carried object the first source's
// record wins, by kind, namespace and name. Neither has a part in any service.
// Nor has what is held of a source: a snapshot knows it for whoever asks
// ([Snapshot.Holds]), and it is no change.
//
// The result is an immutable [Snapshot] and, beside it, the exact [Change]
// from the snapshot before: which services, and which of their endpoints. A
// change costs what it touches: one endpoint of a service of 20,000 copies a
// few small tree nodes, and its service's definition stays the same pointer.
//
// Place in the path: [Run] reads a store's watch and hands snapshot and change
// to the outputs. The [Builder] between is a plain value with one owner, no
// goroutine, no clock and no I/O. Snapshots may be read from any goroutine
// without a lock.
package catalog
