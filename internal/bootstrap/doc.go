// Package bootstrap writes the file with which a client of Isthmus starts: that of
// an Envoy, and that of gRPC.
//
// It reads no file, looks up no name and connects to nothing, so a bootstrap can be
// made on another machine than the client's. What is wrong with a value is reported
// under the flag of "isthmus bootstrap" that it came from, all of it at once.
// Everything in it is a function without state.
package bootstrap
