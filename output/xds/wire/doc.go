// Package wire reads and writes the messages of xDS v3 in both variants: a request as a plain
// [Request], and a response of the engine as a list of buffers.
//
// A request is measured before it is decoded, because a message in memory is a multiple of its
// size on the wire. The bytes of a resource are shared by all streams and not copied: a
// response adds a short tail for its stream alone. The functions are pure.
//
// Place in the path: between the transport, output/streams, and the streams of output/xds.
package wire
