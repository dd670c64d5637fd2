// Package mirror holds the objects of a registry by key, and makes listings and changes
// of the keys that differ.
//
// A [Mirror] holds one kind of object, in the [Part]s that the registry lists one by one,
// such as a collection, a type or a namespace. An object enters by [Part.Put] and
// [Part.Delete], or with others in a [Reading]. A reading is compared first and applied
// later, so an answer that is rejected changes nothing. The mirror notes which keys have
// changed since [Mirror.Take] returned them last.
//
// The source makes an [Entry] of each key: a record, a rejection, or neither. [ListingOf]
// and [ChangeOf] turn the entries of changed keys into a message for the supervisor. A
// part that cannot be read stays as it is, and the source rejects its records.
//
// The package makes no request, decodes nothing and reads no clock.
//
// Concurrency: a mirror belongs to one goroutine.
package mirror
