// Package wire makes the messages of Envoy and gRPC clients: clusters, load assignments,
// listeners, routes, the table of names and secrets.
//
// Each message follows from plain values and a policy. The package decides nothing: callers
// determine which service is reached where. It knows neither the catalog nor the engine.
// Large messages are encoded by hand or in fragments; the others are returned as generated
// types. All functions are pure, and may be called from any goroutine.
package wire
