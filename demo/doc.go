// Package demo shows Isthmus at work, all on loopback and in one process: a registry, gRPC
// backends, the application as isthmus serve runs it, and a gRPC client that finds the
// backends over xDS and keeps calling them.
//
// [Run] gives a tour. Each step changes a registry the way an operator would,
// and ends only when the client has observed the effect: the answering backends, the
// backends still tried, the failed calls. The latencies shown are the client's. They last
// from the writing of a file to the first answer of a backend or the last attempt to reach
// it. Nothing is taken from inside the application; the demo knows of it only through the
// admin API.
//
// Beside a folder of manifests there is a second registry, a stand-in for ServiceComb
// Service Center: the last steps show one service of both, an outage, and a held drop.
//
// The parts are a file each: backend, registry (and the manifests in it), the second
// registry, control, client.
// The client's observations go to the ledger, the only part that goroutines share. The tour
// runs in its own goroutine, and the goroutine that called Run owns the screen. When Run
// returns, all of them have ended, the listeners are closed and the folder is gone.
package demo
