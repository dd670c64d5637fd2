// Package mcp mirrors a source of the Mesh Configuration Protocol, version 1. It is
// the sink: it asks a peer for collections of resources, applies what comes, and
// answers. It dials the peer, or listens for one that dials.
//
// What a peer says is kept by collection, as resources by name with a hash of their
// bytes. So a peer that sends everything for each change costs one pass over the
// bytes, and only the resources that differ are decoded and compared with the store.
//
// The first listing of a stream is that of all collections together, and is passed
// on when each has come, or no service can be in those that have not: see needed.go.
// What comes later goes on by itself: a state as a listing of
// the places in which something differs, so that the supervisor decides about what
// is missing, and an increment as a change, for what a peer removes by name is
// reported. An answer is ACKed once it is stored. A resource that cannot be taken is
// rejected and keeps its last good version. An answer of which nothing can be
// decoded changes nothing, and is NACKed with the reason.
//
// How resources become records is the business of package convert/istio. What
// collections hold, and what an answer changes, are functions without I/O, in
// holding.go, needed.go and answer.go. The rules are in docs/reference/mcp.md.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. A stream has one
// more goroutine, which receives, and ends before [Source.Run] returns.
package mcp
