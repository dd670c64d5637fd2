// Package streams serves gRPC streams of a push engine so that no client costs the others
// more than it may. The content of the streams belongs to the protocols, output/xds and
// output/mcp, each of which has a [Server] of its own.
//
// It guards connections. Limits apply to the connections of one address without streams,
// the duration of a handshake, the rate of opened streams, reset or not, and the rate of
// pings. It also checks whether a client's certificate is still valid. It admits the streams of
// every registered method ([Server.RegisterService]) and determines the identity of the peer
// ([Identity]). It receives requests with bounds in bytes, in time and in number ([Receive],
// [Pace]). It runs each stream to its end ([Stream.Run]) and reports why it ended, in a limited
// log and in counts by [Cause].
//
// A stream has two goroutines. One receives and hands requests to the engine at once, so
// that an ACK never waits for a response that is being sent. The other, gRPC's own, sends.
// Neither holds a lock of the engine while it waits for the peer. A [Server] may be used
// from any goroutine, a [Stream] from those two.
package streams
