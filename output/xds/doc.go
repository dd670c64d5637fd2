// Package xds serves the aggregated discovery service of xDS v3, in both its
// variants, from a push engine.
//
// It is protocol and nothing else: requests become subscriptions and verdicts
// of the engine's, and the engine's responses become messages. What a resource
// means is none of its business. The wire keeps the bytes the engine shares
// between streams: a response is a list of buffers with a short tail of its own.
//
// Place in the path: the last room but the client. Each stream has two
// goroutines: one receives requests and hands them to the engine at once, so
// that answers are never kept waiting by what is being sent; the other, gRPC's
// own, sends. Neither holds a lock of the engine's while it waits for the peer.
//
// The rules it keeps are numbered in docs/reference/xds.md.
package xds
