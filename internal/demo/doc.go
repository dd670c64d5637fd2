// Package demo shows Isthmus at work, all on loopback and in one process: a
// registry, gRPC backends, the application as
// isthmus serve runs it, and a gRPC client that finds the backends over xDS and
// keeps calling them.
//
// [Run] gives a tour of five steps. Each changes the registry the way an
// operator would and is over only when the client saw what was to be seen: who
// answered, who was still tried, which calls failed. The latencies shown are
// the client's, from the writing of a file to the first answer of a backend or
// the last attempt to reach it. Nothing is taken from inside the application;
// what the demo knows of it comes from the admin API.
//
// The parts are a file each: backend, registry (and the manifests in it),
// control, client. What the client sees goes to the ledger, the only part that
// goroutines share; the tour runs in a goroutine of its own, and the one that
// called Run owns the screen. When Run returns, all of them have ended, the
// listeners are closed and the folder is gone.
package demo
