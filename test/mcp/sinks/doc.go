// Package sinks runs the real program as a source of the Mesh Configuration Protocol,
// for sinks that share nothing with it: those that istio.io/api generated as long as
// it had all of the protocol.
package sinks
