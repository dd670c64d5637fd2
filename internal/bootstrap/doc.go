// Package bootstrap writes the bootstrap file of a client of Isthmus, for Envoy and for
// gRPC.
//
// It reads no file, looks up no name and connects to nothing. A bootstrap can therefore be
// made on another machine than the client's. All invalid values are reported at once, each
// under its flag of "isthmus bootstrap". Its functions have no state.
package bootstrap
