// Package policy is the configuration of the resources that Envoys get: the
// settings under outputs.xds.envoy, with their defaults and their validation,
// and the lookups that need nothing but them.
//
//	Settings ──▶ Validate ──▶ errors with field paths
//	Settings ──▶ Prepare  ──▶ Prepared ──▶ the policy of a host, a port of the edge, gateways
//
// It does not know the catalog, the engine or the messages of Envoy. Package
// envoy, which imports it, reads a [Policy] and writes messages from it. gRPC
// clients get the parts of a policy that gRPC supports.
//
// Concurrency: [Prepared] and all that it returns are immutable and may be used from any
// goroutine. Settings do not change once they are prepared. Nothing here starts a
// goroutine, reads a clock or does I/O.
package policy
