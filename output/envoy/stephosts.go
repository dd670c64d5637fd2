package envoy

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// stepHosts is what a step finds out of all services of a host. It looks at them once:
// many namespaces may have services of their own of one host, all of which change at once.
type stepHosts struct {
	now   *catalog.Snapshot
	hosts map[string]*stepHost
}

// stepHost is what the services of a host have together, after the step.
type stepHost struct {
	services  int
	ports     []uint32 // in order
	addresses map[string]struct{}
	pods      []sharedName   // their listeners of single addresses
	healthy   map[uint32]int // by port: how many of them have a healthy endpoint there

	// concerned are those who may see a change of one of them that concerns a port, and
	// changed those who may see any.
	concerned map[uint32]*namespaceSet
	changed   *namespaceSet
}

func newStepHosts(now *catalog.Snapshot) *stepHosts {
	return &stepHosts{now, map[string]*stepHost{}}
}

func (s *stepHosts) of(host string) *stepHost {
	if known := s.hosts[host]; known != nil {
		return known
	}
	h := &stepHost{addresses: map[string]struct{}{}, healthy: map[uint32]int{}, concerned: map[uint32]*namespaceSet{}, changed: &namespaceSet{}}
	for service := range s.now.ByHost(host) {
		h.services++
		for _, port := range service.Ports {
			h.ports = append(h.ports, port.Number)
			if service.Endpoints(port.Number).Counts().Healthy > 0 {
				h.healthy[port.Number]++
			}
		}
		for address := range service.EveryAddress() {
			h.addresses[address] = struct{}{}
		}
		for name := range allPodListeners(service) {
			h.pods = append(h.pods, name)
		}
	}
	slices.Sort(h.ports)
	h.ports = slices.Compact(h.ports)
	s.hosts[host] = h
	return h
}
