// Package envoy translates a catalog snapshot into the resources that Envoy
// and gRPC clients read over xDS: clusters, load assignments, listeners and routes.
//
// It only translates: a snapshot goes in, named bytes with a version
// come out. Streams, nonces and subscriptions belong to the protocol (output/xds).
// The engine (push) decides which client gets which resource, and asks [World] for
// it by name. [Changes] returns the names that a change may concern.
//
//	catalog.Snapshot ──▶ World.Find ──▶ subject ──▶ Encode ──▶ Any bytes + version
//	catalog.Change   ──▶ Changes    ──▶ the names that may differ
//
// Clusters and load assignments are of one service port each, or of a subset of its
// endpoints, and so are the listeners and routes of gRPC. Those of Envoys are of many
// services, and depend on the role of the Envoy:
//
//   - A sidecar has a listener for each address and port of the called services
//     (outbound.go), with a route configuration for each port, which is put
//     together from fragments that all views share (package vhost). For the workload's
//     own ports it has one listener (inbound.go).
//   - An edge has the listeners of the configuration (edge.go).
//   - Any other Envoy has listeners of its own, and is given clusters and assignments.
//
// Package policy has the configuration: how hosts are called, and where Envoys listen. A
// [Translator] translates under it. The settings do not change, and are part of each view.
// Package wire makes the messages, from values and a policy. Secrets serve TLS to endpoints, and
// name files on the Envoy's machine. Only clients with a cluster that names a secret are sent its
// paths.
//
// With LEDS the endpoints of large services go one by one, as members of collections.
// These, with a journal of each, are made from those of the world before, and their names
// begin with a random number of the process. All else follows from the snapshot.
//
// Every resource is a pure function of its subject. The subject holds the
// data of the resource and nothing else. So an endpoint that comes or goes does not
// change the subject of a STATIC service's cluster, and a conflict between two
// sources changes no subject. The bytes of a resource are equal on every replica, and
// so is its version, a hash of them; collections, and the assignments that name one, are
// the exception.
//
// Envoy and gRPC get the same resource wherever both want the same, and then it
// is encoded once. Clusters differ: those for Envoys have istiod's defaults, and those
// of names depend on the addresses that the Envoy itself has. Load assignments differ
// where endpoints of a locality differ in weight, since gRPC obeys only weights
// of localities. A service that a kind of client cannot use is not offered to it at
// all: no listener, route, cluster or assignment ([NotOffered] returns the reason). A single
// endpoint that no client could use is left out of its assignment, since clients would
// NACK the whole assignment for it ([Unserved]).
//
// Concurrency: everything that a [World] leads to may be used from any goroutine. It is
// immutable, except for values that are computed at first use. The function that
// [Translator.Begin] returns has one caller at a time. Nothing here starts a goroutine, reads
// a clock or does I/O, but for one random number by which collections are named.
package envoy
