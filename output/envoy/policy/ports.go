package policy

import "slices"

// The ports of an Envoy itself, as in Istio.
const (
	adminPort    = 15000
	OutboundPort = 15001 // for connections that the workload makes, redirected by iptables
	InboundPort  = 15006 // for connections to the workload, likewise
	HealthPort   = 15021
	MetricsPort  = 15090
)

const highestPort = 65535

// IsOwnPort reports whether an Envoy that connections are redirected to listens at a port
// itself: for its admin interface, redirected connections, health or metrics.
func IsOwnPort(number uint32) bool {
	return slices.Contains([]uint32{adminPort, OutboundPort, InboundPort, HealthPort, MetricsPort}, number)
}
