// Package xdsclient is a strict, scripted xDS client for tests of a server.
//
// A client speaks the aggregated discovery service over a real gRPC connection,
// in the delta variant ([NewDelta]) or as state of the world ([NewSotW]), and
// keeps by type what the protocol says it has. By itself it answers every
// response at once: it NACKs those in which [Config].NACK finds fault and
// accepts the others. A script may also hold the answers back, change
// subscriptions, disconnect, and come back with or without what it held.
//
// Every message is checked when it arrives, and a server that breaks a rule
// fails the test at the script's next step, with a transcript:
//
//   - form: nonces are there and unique, a resource is of the response's type
//     and comes once, delta resources have names and versions (check.go);
//   - versions say the same everywhere: one version, one content (ledger.go);
//   - nothing comes without a reason: it changed, was asked for, was part of a
//     NACKed response, answers a first request, or goes with its cluster
//     (explain.go);
//   - order: a cluster's assignment follows it, a route comes after its
//     cluster, and a cluster goes after what leads to it (order.go).
//
// A client's methods belong to the script, one goroutine at a time. What they
// share with the goroutine that receives is guarded inside.
package xdsclient
