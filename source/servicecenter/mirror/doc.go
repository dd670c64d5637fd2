// Package mirror holds the known state of a Service Center, and turns it into listings.
//
// A [State] follows the answers of the registry and makes no requests. It has two
// layers: the finds hold the instances of each key, by cached and by direct answers;
// the services of the mesh, with their names, ports and lists that lack them, are made
// of these. The [Graph] holds who uses whom.
//
// A failed or invalid answer changes only the reason why a service may be old. A
// service counts as gone when two lists in a row lack it and a find denies it.
//
// Concurrency: a [State] and a [Graph] belong to one goroutine.
package mirror
