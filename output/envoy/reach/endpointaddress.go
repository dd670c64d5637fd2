package reach

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// InboundTraffic returns the traffic of a port of a workload. A TLS handshake is for the
// workload itself, so TLS is TCP here.
func InboundTraffic(s catalog.InboundPort) Traffic {
	kind := TrafficOf(s.Port)
	if kind == TLS || kind == Detected && serverFirst(s.Target) {
		return TCP
	}
	return kind
}

// DecidesInbound reports whether a, and not b, decides the protocol of an inbound port.
func DecidesInbound(a, b catalog.InboundPort) bool {
	if a.Key == b.Key {
		return a.Port.Number < b.Port.Number
	}
	return catalog.Address.Owner(a.Key.Namespace, a.ServiceDefinition, b.ServiceDefinition) < 0
}

// Follows reports whether the cluster of a service port leads connections to the address that
// they were made to. Requests have the host of the service in them, and go to any endpoint.
func Follows(p node.Proxy, s *catalog.Definition, port model.Port) bool {
	kind := TrafficOf(port)
	return p.Mode != node.None && s.Traffic.Headless && s.ChosenAt(p.Cluster, port.Number) && kind != NotTCP && kind != HTTP
}

// GoesToOriginal reports whether the cluster of a service port has no endpoints, but leads
// connections to where they were going. How many endpoints the service has does not matter,
// so that its cluster does not change with them.
func GoesToOriginal(p node.Proxy, s *catalog.Definition, port model.Port) bool {
	return p.Role == node.Sidecar && (Follows(p, s, port) || StaysInCluster(p, s, port))
}

// StaysInCluster reports whether connections to a service port are left to the client's cluster: they
// go to the address that they were made to, which is the cluster's own. Nobody has to know
// which cluster that is.
func StaysInCluster(p node.Proxy, s *catalog.Definition, port model.Port) bool {
	kind := TrafficOf(port)
	return p.Mode != node.None && s.Traffic.ClusterLocal && s.ResolutionAt(port.Number) == model.ResolutionStatic && kind != NotTCP && kind != HTTP
}

// SubsetForm is the form in which a kind of client gets a subset of a service port. Where
// clients resolve names it depends on how many of them are in the subset.
func SubsetForm(s *policy.Selector, kind string, of *catalog.Service, port model.Port) Form {
	whole := FormFor(kind, of, port)
	switch {
	case s == nil || whole == NoForm || whole == EDS:
		return whole
	case whole == OriginalDST: // there are no endpoints to choose from
		return NoForm
	case IsGRPC(kind): // it resolves one name, which is the whole
		return NoForm
	}
	f, _ := offerDNS(kind, of, port, s)
	return f
}
