// Package yamlpos reads YAML and JSON files and remembers the position of every value, so
// that a later fault can be shown with its line.
//
// [Documents] splits a file into its documents and reads each on its own: a broken document
// does not affect its neighbours. A document becomes a tree of [Node] values in JSON's
// terms (null, bool, number, string, list, map). Aliases and merge keys are already
// resolved in it, and every scalar has the meaning that Kubernetes gives it. A node knows
// its line and the line of any field below it ([Node.LineOf]). It renders itself as JSON
// that keeps the lines ([Node.JSON]), so that a decoder without knowledge of YAML still
// reports the right place.
//
// Files are untrusted input: size, depth and the growth by aliases are bounded, and nothing
// in a file makes this package panic. The required content of a document is not its
// concern.
//
// Concurrency: functions here share nothing; a Node is never changed after [Documents]
// yielded it.
package yamlpos
