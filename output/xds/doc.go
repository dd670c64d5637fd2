// Package xds serves the discovery services of xDS v3, aggregated and one for
// each type, in both variants, from a push engine.
//
// It is protocol and nothing else: requests become subscriptions and answers
// of the engine's, and the engine's responses become messages. What a resource
// means is none of its business. The wire keeps the bytes the engine shares
// between streams: a response is a list of buffers with a short tail of its own.
//
// Place in the path: the last room but the client. Each stream has two
// goroutines: one receives requests and hands them to the engine at once, so
// that answers are never kept waiting by what is being sent; the other, gRPC's
// own, sends. Neither holds a lock of the engine's while it waits for the peer.
//
// Who a client is, its certificate says, if one is demanded; what it says of
// itself can only narrow that. What one client can cost the others is bounded by
// [Limits]: a request is measured before it is decoded, and what is too fast
// waits in the transport, which makes the client wait.
//
// The rules it keeps are numbered in docs/reference/xds.md.
package xds
