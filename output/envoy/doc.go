// Package envoy translates a catalog snapshot into the resources that Envoy
// and gRPC clients read over xDS: clusters, load assignments, and for gRPC
// listeners and routes.
//
// It is the translation alone: a snapshot goes in, named bytes with a version
// come out. Streams, nonces and subscriptions are the protocol's (output/xds);
// the engine (push) decides which client gets what, and asks [World] for it
// by name and [Changes] says which names a change may concern.
//
//	catalog.Snapshot ──▶ World.Find ──▶ subject ──▶ Encode ──▶ Any bytes + version
//	catalog.Change   ──▶ Changes    ──▶ the names that may differ
//
// Every resource is a pure function of its subject, which holds what the
// resource is made of and nothing else: an endpoint that comes or goes leaves
// the cluster of a STATIC service the same subject, and a conflict between two
// sources leaves everything the same. Bytes are equal on every replica, so
// versions, which are hashes of them, are too.
//
// Envoy and gRPC get the same resource wherever both can read it, and then it
// is encoded once. What a kind of client cannot do is not offered to it at
// all: no listener, route, cluster or assignment ([NotOffered] says why). A
// single endpoint that no client could use is left out of its assignment
// rather than making clients NACK the others ([Unserved]).
//
// Concurrency: everything here is immutable once made and may be used from any
// goroutine. Nothing starts one, reads a clock or does I/O.
package envoy
