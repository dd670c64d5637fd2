// Package mcp runs the real program against independent peers of the Mesh
// Configuration Protocol: those that istio.io/api generated as long as it had all of
// the protocol. That version of it cannot be linked with the one that Isthmus has, so
// this module shares no code with Isthmus.
//
// Files that begin with source are about the source of Isthmus, where the peer has the
// resources, and those that begin with output about its output.
package mcp
