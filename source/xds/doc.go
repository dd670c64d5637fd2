// Package xds mirrors a server of MCP-over-xDS: another Isthmus, istiod, or a registry
// that serves Istio's objects on the aggregated discovery service, as Nacos does.
//
// It asks for each kind as istiod does, by the name of its type, in the delta variant
// where the server answers that, and else in the state-of-the-world variant. What the
// server has said is kept as bytes, by name: a resource that is repeated unchanged is
// not decoded, and a connection that is lost resumes with what is held, so that the
// server says what is gone.
//
// A first listing is complete once the first state of each type is: another Isthmus marks
// the end of that, and of any other delta server silence says it, which is longer where
// more depends on it. From then on, what a delta answer removes by name is deleted, and
// what a complete answer lacks is missing, which the supervisor judges. An answer is
// ACKed when what can be used of it is stored. A resource that is invalid is rejected by
// itself; an answer of which nothing can be decoded is NACKed, and leaves everything as
// it was.
//
// How an answer changes what is held, and what that becomes, are functions without
// I/O, in held.go and resource.go. The rules are in docs/reference/mcp.md.
//
// Concurrency: a [Source] belongs to the goroutine that runs it. A stream has a
// goroutine that receives, which ends before [Source.Run] returns.
package xds
