// Package explain follows a call through the resources of a client, as the client itself
// would, and says where the way ends and why.
//
// Follow begins with the catalog: which service the host names for the client, and whether
// exports and scopes let the client see it. Then it reads the newest resources of the client
// and takes the decisions of Envoy and gRPC: listener, filter chain, virtual host, cluster,
// endpoints. It relies on no knowledge of how the resources were made.
//
// Place in the path: outside, on demand. Nothing is kept, so changes cost nothing.
package explain
