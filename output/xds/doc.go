// Package xds serves the discovery services of xDS v3, aggregated and one for each type, in
// both variants, from a push engine.
//
// It contains only the protocol. It turns requests into the engine's subscriptions, ACKs
// and NACKs, and the engine's responses into messages. It does not look into resources. Its
// package node reads a client's node, and its package wire the messages. A stream decides in
// two steps: the type of a request (types.go), and the request in the engine's terms
// (request.go).
//
// Place in the path: the last package before the client. Each stream has two goroutines.
// One receives requests and hands them to the engine at once, so that an ACK never waits
// for a response that is being sent. The other, gRPC's own, sends. Neither holds a lock of
// the engine while it waits for the peer.
//
// If client certificates are required, the certificate determines a client's identity, and
// its node metadata can only narrow that. [Limits] bound the cost of one client for the
// others. A request is measured before it is decoded, and requests that come too fast wait
// in the transport, which slows the client down.
//
// The rules it keeps are numbered in docs/reference/xds.md.
package xds
