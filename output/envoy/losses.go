package envoy

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// losses returns the ports that have lost an endpoint in some view
// that it had before: it was removed, or is not healthy any more. Clients
// go on sending there until they know.
func losses(now *catalog.Snapshot, host string, c catalog.ServiceChange) map[uint32]bool {
	lost := map[uint32]bool{}
	if c.Old != nil && c.New != nil && sameStanding(c.Old, c.New) {
		for id := range c.Endpoints {
			if serves(c.Old, id) && (!serves(c.New, id) || c.New.Traffic.NodeLocal && moved(c, id)) {
				lost[id.ServicePort] = true
			}
		}
		for _, port := range c.Old.Ports {
			lost[port.Number] = lost[port.Number] || c.New.Traffic.NodeLocal && !c.Old.Traffic.NodeLocal
		}
		return lost
	}
	// Views change over to another service of the host, or from one.
	left := func(s *catalog.Service) {
		for _, port := range s.Ports {
			lost[port.Number] = lost[port.Number] || s.Endpoints(port.Number).Counts().Healthy > 0
		}
	}
	if c.Old != nil {
		left(c.Old)
	}
	for other := range now.ByHost(host) {
		if c.New == nil || other.Key != c.New.Key {
			left(other)
		}
	}
	return lost
}

// serves reports whether a service has an endpoint and it is healthy.
func serves(s *catalog.Service, id catalog.EndpointID) bool {
	e, ok := s.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	return ok && e.Health == model.Healthy
}

// moved reports whether an endpoint is on another node than before.
func moved(c catalog.ServiceChange, id catalog.EndpointID) bool {
	was, _ := c.Old.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	is, _ := c.New.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	of, _ := was.Labels.Get(clusterLabel)
	now, _ := is.Labels.Get(clusterLabel)
	return was.Node != is.Node || of != now
}
