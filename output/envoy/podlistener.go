package envoy

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// A headless service has no address of its own. Its clients choose an endpoint, such as
// the pod that leads a database, and connect to the address of that. So an Envoy with
// redirected connections listens at the address of each endpoint, and forwards connections to
// their original destination. One listener for all addresses could not distinguish two such
// services of one port, nor either from addresses of no service.

// podAddresses yields those addresses of endpoints of a service at which Envoys listen.
func podAddresses(w *state, v View, s catalog.ServiceDefinition, index *catalog.PortServices) iter.Seq[string] {
	service, ok := w.snapshot.Service(s.Key)
	if !ok || v.proxy.Reserved(index.Number) || !reach.AtEndpoints(v.proxy, s, index) {
		return nothing
	}
	return func(yield func(string) bool) {
		for address := range service.EndpointAddresses(index.Number) {
			if v.proxy.Family.Has(address) && !yield(address) {
				return
			}
		}
	}
}

// findPodListener returns the listener of the address of an endpoint. Several services may
// contain the endpoint, such as one for all pods of a StatefulSet and one for each of them. All of them
// lead to the same place. There is none if another service has the address as its own.
func findPodListener(w *state, v View, address string, number uint32) (world.Subject, bool) {
	if v.proxy.Reserved(number) || !v.proxy.Family.Has(address) || w.snapshot.Port(number).TakenIn(v.proxy.Cluster, address, v.viewer()) {
		return nil, false
	}
	var candidates []catalog.ServiceDefinition
	for s := range w.snapshot.HeadlessAt(v.viewer(), number, address) {
		if port, ok := s.Port(number); ok && reach.Follows(v.proxy, s.Definition, port) && reach.HasCluster(s, number) {
			candidates = append(candidates, s)
		}
	}
	if len(candidates) == 0 {
		return nil, false
	}
	first := slices.MinFunc(candidates, func(a, b catalog.ServiceDefinition) int { return widest(v.Namespace, a, b) })
	return addressListenerOf(v, address, number, []catalog.ServiceDefinition{first}), true
}

// widest is the order of services with the same endpoint address. If only their names differ,
// the shorter host comes first: the service of all pods.
func widest(namespace string, a, b catalog.ServiceDefinition) int {
	asked := catalog.Address
	return cmp.Or(asked.Precedence(namespace, a, b), cmp.Compare(len(a.Key.Host), len(b.Key.Host)), asked.Owner(namespace, a, b))
}

// podListeners yields those that a change of endpoints may bring or take away.
func podListeners(c catalog.ServiceChange) iter.Seq[sharedName] {
	return func(yield func(sharedName) bool) {
		if !c.New.Headless() {
			return
		}
		for at := range c.Workloads() {
			for _, port := range c.New.Ports {
				if reach.Follows(node.Proxy{}, c.New.Definition, port) && !yield(sharedName{ListenerType, names.Socket(at.Address, port.Number)}) {
					return
				}
			}
		}
	}
}

// allPodListeners yields those of a service. One that is large has none.
func allPodListeners(s *catalog.Service) iter.Seq[sharedName] {
	return func(yield func(sharedName) bool) {
		if !s.Headless() {
			return
		}
		for _, port := range s.Ports {
			if s.Endpoints(port.Number).Counts().Total > catalog.LargeHeadless {
				continue
			}
			for address := range s.EndpointAddresses(port.Number) {
				if !yield(sharedName{ListenerType, names.Socket(address, port.Number)}) {
					return
				}
			}
		}
	}
}
