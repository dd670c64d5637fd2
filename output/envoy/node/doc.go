// Package node describes the Envoy of a client: its role, its interception of connections,
// its addresses and its resolver, as its node metadata declares them.
//
// All values are comparable, and are part of views. The functions are pure.
package node
