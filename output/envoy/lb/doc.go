// Package lb chooses the endpoints of load assignments: the endpoints that a client may use,
// their priorities by its location, their weights, and the gateways to other networks.
//
// A [Draft] is filled by one walk over the endpoints of a service port, so a service of 20,000
// endpoints costs a handful of allocations. Package wire encodes it. A draft has one owner.
package lb
