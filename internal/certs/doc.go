// Package certs keeps a listener's certificate, key and client CA as they are
// in their files now, so that they can be rotated under load.
//
// The files are read at each handshake and parsed when their content changed.
// Nothing is watched and nothing runs in the background: it makes no difference
// how a file was replaced, written over, renamed onto, or swapped through
// Kubernetes' symbolic links, and a handshake that begins after a rotation uses
// what was rotated in. Three small files cost less than the handshake does.
//
// Files that cannot be used, such as a certificate whose key is yet to be
// written, change nothing: what was good before stays in use, and [Keeper.Err]
// says why. Connections that are open keep what they were opened with: whoever
// serves them looks at [Keeper.ClientCAs] from time to time, and ends those whose
// certificates no longer prove anything.
//
// A [Keeper] may be used from any goroutine.
package certs
