// Package envoy translates a catalog snapshot into the resources that Envoy
// and gRPC clients read over xDS: clusters, load assignments, and for gRPC
// listeners and routes.
//
// It is the translation alone: a snapshot goes in, named bytes with a version
// come out. Streams, nonces and subscriptions belong to the protocol (output/xds).
// The engine (push) decides which client gets which resource, and asks [World] for
// it by name. [Changes] says which names a change may concern.
//
//	catalog.Snapshot ──▶ World.Find ──▶ subject ──▶ Encode ──▶ Any bytes + version
//	catalog.Change   ──▶ Changes    ──▶ the names that may differ
//
// Every resource is a pure function of its subject. The subject holds what the
// resource is made of and nothing else. So an endpoint that comes or goes does not
// change the subject of a STATIC service's cluster, and a conflict between two
// sources changes no subject. The bytes of a resource are equal on every replica, and
// so is its version, a hash of them.
//
// Envoy and gRPC get the same resource wherever both want the same, and then it
// is encoded once. Clusters differ: those for Envoys have istiod's defaults, and those
// of names depend on the addresses that the Envoy itself has. Load assignments differ
// where endpoints of a locality differ in weight, since gRPC obeys weights of
// localities alone. A service that a kind of client cannot use is not offered to it at
// all: no listener, route, cluster or assignment ([NotOffered] says why). A single
// endpoint that no client could use is left out of its assignment, since clients would
// NACK the whole assignment for it ([Unserved]).
//
// Concurrency: everything here is immutable once made and may be used from any
// goroutine. Nothing starts one, reads a clock or does I/O.
package envoy
