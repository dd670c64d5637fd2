// Package yamlpos reads YAML and JSON files and remembers where everything
// stood, so that whatever is found wrong later can be shown with its line.
//
// [Documents] cuts a file into its documents and reads each on its own: one
// broken document takes nothing of its neighbours with it. What a document
// holds becomes a tree of [Node] values in JSON's terms (null, bool, number,
// string, list, map), in which aliases and merge keys are already resolved and
// every scalar means what Kubernetes takes it to mean. A node tells its line
// and the line of any field below it ([Node.LineOf]), and renders itself as
// JSON that keeps the lines ([Node.JSON]), so that a decoder that knows
// nothing of YAML still reports the right place.
//
// Files are untrusted input: size, depth and the growth by
// aliases are bounded, and nothing in a file makes this package panic. What a
// document must contain is not its business.
//
// Concurrency: functions here share nothing; a Node is never changed after
// [Documents] yielded it.
package yamlpos
