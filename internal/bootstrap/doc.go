// Package bootstrap writes the bootstrap file of a client of Isthmus: [Envoy.YAML] for Envoy,
// and [GRPC.Client] for gRPC. The command "isthmus bootstrap" sets the values.
//
// All invalid values are reported at once, each under its flag. The package reads no file,
// resolves no name and opens no connection. So a bootstrap can be made on another machine
// than the client's. Its functions have no state, and may be called from any goroutine.
package bootstrap
