// Package mcp serves the Mesh Configuration Protocol, version 1, from a push engine: it is
// a source for Istio 1.1 to 1.7 and for any other client of that protocol. Sinks dial it,
// or it dials them.
//
// It contains only the protocol. It turns requests into the engine's subscriptions, ACKs
// and NACKs, and the engine's responses into messages. Another package makes the content of
// a collection ([Translation]), and all streams share its bytes.
//
// A collection goes to a sink as its full state or as increments. Both sides have to agree
// to increments, each time: the engine switches the mode with each answer. The first
// response of a stream is the full state, unless the sink lists its resources or the state
// is too large for one message.
//
// Place in the path: the last package before the sink. As in xDS, each stream has one
// goroutine that receives and one that sends, and neither holds a lock of the engine while
// it waits for the peer. [Limits] bound the cost of one sink for the others.
//
// The rules it keeps are in docs/reference/mcp.md.
package mcp
