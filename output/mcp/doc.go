// Package mcp serves the Mesh Configuration Protocol, version 1, from a push engine:
// it is a source for Istio 1.1 to 1.7 and for whatever else takes that protocol.
// Sinks dial it, or it dials them.
//
// It is protocol and nothing else: it turns requests into the engine's subscriptions,
// ACKs and NACKs, and the engine's responses into messages. What a collection holds is
// made elsewhere ([Translation]), and its bytes are shared by all streams.
//
// A collection goes to a sink as its full state or as increments. Both sides have to
// agree to increments, each time: the engine switches the mode with each answer. The
// first response of a stream is the full state, unless the sink says what it holds or
// the state is too large for one message.
//
// Place in the path: the last package before the sink. As in xDS, each stream has one
// goroutine that receives and one that sends, and neither holds a lock of the engine
// while it waits for the peer. [Limits] bound what one sink can cost the others.
//
// The rules it keeps are in docs/reference/mcp.md.
package mcp
