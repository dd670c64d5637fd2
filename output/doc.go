// Package output is the contract between the application and its outputs.
//
// An output takes the catalog somewhere: it serves it to clients, or writes it
// into another system. A kind of output is a package of its own, output/NAME, and
// one row in the table of kinds of package config. The package has
//
//   - settings, a structure of the configuration that implements [Settings],
//   - the output that the settings open, which implements [Output].
//
// The application knows outputs by these two interfaces alone. It publishes each
// snapshot to all of them, runs them until it stops, and shows what they report.
// README.md teaches writing one.
//
// Place in the path: behind the catalog's gate, so an output never sees what is
// not primed. Publish and Run are called by one goroutine each, Report by any.
package output
