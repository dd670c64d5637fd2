// Package secrets keeps the certificates that clients are sent, with the private keys.
//
// An [Issuer] makes a [Leaf], which is a certificate and its key. A [Keeper] asks it once for
// each identity and window, off the path of pushes, and has the newest leaf in memory for as
// long as a client of the identity is connected. Before a leaf is half as old as it may become,
// a window ends and the next leaf is made. Windows follow from the identity alone, so all
// replicas agree on them, and windows of different identities do not end at the same time.
//
// Keys are in memory alone: no record, snapshot, log or error has one.
//
// A [Keeper] may be used from any goroutine. A [Leaf] is immutable.
package secrets
