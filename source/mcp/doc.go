// Package mcp mirrors a source of the Mesh Configuration Protocol, version 1. Isthmus
// is the sink: it asks a peer for collections of resources, applies the answers, and
// acknowledges them. The source dials the peer, or listens for a peer that dials.
//
// The peer's state is kept by collection, as resources by name with a hash of their
// bytes. So a peer that sends everything for each change costs one pass over the
// bytes. Only the resources that differ are decoded and compared with the store.
//
// The first listing of a stream covers all collections together. It is passed on when
// each collection has come, or when the missing ones can contain no service: see
// needed.go. Later answers are passed on one by one. A complete state is a listing of
// the places in which a resource differs. The supervisor decides about missing
// records. An increment is a change, since the peer reports removed resources by
// name. An answer is ACKed once it is stored. An invalid resource is rejected and
// keeps its last good version. An answer without a single decodable resource changes
// nothing, and is NACKed with the reason.
//
// Package convert/istio turns resources into records, and source/mirror holds them.
// Functions without I/O compare answers in answer.go, judge in needed.go whether enough
// has come, and make messages for the supervisor in report.go. A session belongs to one
// stream; the [Source] opens the stream and knows the configuration.
// The rules are in docs/reference/mcp.md.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. A stream has one
// more goroutine, which receives, and ends before [Source.Run] returns.
package mcp
