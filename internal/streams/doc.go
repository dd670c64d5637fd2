// Package streams serves gRPC streams of a push engine so that no client costs the
// others more than it may. What is said on them is for the protocols, output/xds and
// output/mcp, each of which has a [Server] of its own.
//
// It guards the connections: how many of one address may be open without a purpose,
// how long a handshake takes, how fast streams are opened, reset or not, how often a
// client pings, and whether its certificate still holds. It lets streams in
// ([Server.Handler]), knows who is at their other end ([Identity]), and takes in their
// requests with a bound in bytes, in time and in number ([Receive], [Pace]). It runs
// each to its end ([Stream.Run]) and says why it ended, in a log that is limited and
// in counts by [Cause].
//
// A stream has two goroutines: one receives and hands requests to the engine at once,
// so that an ACK never waits for a response that is being sent; the other, gRPC's own,
// sends. Neither holds a lock of the engine while it waits for the peer. A [Server] may
// be used from any goroutine, a [Stream] from those two.
package streams
