// Package xds serves the discovery services of xDS v3, aggregated and one for
// each type, in both variants, from a push engine.
//
// It is protocol and nothing else: it turns requests into the engine's
// subscriptions, ACKs and NACKs, and the engine's responses into messages. It does
// not look into resources. The bytes of a resource are shared by all streams and not
// copied: a response is a list of buffers, with a short tail for its stream alone.
//
// Place in the path: the last package before the client. Each stream has two
// goroutines. One receives requests and hands them to the engine at once, so that
// an ACK never waits for a response that is being sent. The other, gRPC's own, sends.
// Neither holds a lock of the engine while it waits for the peer.
//
// If client certificates are required, a client's identity is that of its
// certificate, and its node metadata can only narrow that. [Limits] bound what one
// client can cost the others: a request is measured before it is decoded, and
// requests that come too fast wait in the transport, which slows the client down.
//
// The rules it keeps are numbered in docs/reference/xds.md.
package xds
