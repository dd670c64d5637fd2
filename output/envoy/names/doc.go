// Package names writes and parses the names of resources for Envoys and gRPC clients, which
// are Istio's. Each parse function accepts exactly the results of its counterpart. All
// functions are pure.
package names
