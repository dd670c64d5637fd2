// Package sds has the subjects of secrets: certificates and authorities that are sent, and the
// paths of files on the Envoy's machine. Which client gets which secret is decided by package
// envoy, but for this: [Own] finds nothing of another identity than the given one.
//
// The functions have no state, and may be called from any goroutine.
package sds
