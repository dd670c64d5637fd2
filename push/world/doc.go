// Package world is the contract between an engine and the producers of its resources, and
// the engine's way to read them.
//
// A producer has a table of types, each a [TypeSpec], and publishes a [World]: one immutable
// state of everything it serves. A world resolves a name in a client's [View] to a
// [Subject], and a subject is encoded to a resource. A [Reader] does both for all streams:
// it encodes a revision once, shares the bytes, and survives panics of producers. [Types]
// resolves the relations between the types of all producers.
//
// The package knows no subscriber. Everything in it is immutable, but for a Reader, which
// any goroutine may use. Package push gives most names of this package to its users.
package world
