// Package node reads the node of a client: its kind, its workload, its place in the mesh, and
// the listeners of its proxy, as the node's metadata declares them.
//
// The metadata is Istio's, with two fields of Isthmus. Invalid values are ignored, and the
// reasons are returned. Oversized values are rejected by [Limits.Check], since they are kept
// as long as the client is connected. The functions are pure.
//
// Place in the path: output/xds gives each stream's node to it, and its result to the engine.
package node
