package envoy

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
)

// losses returns the ports that have lost an endpoint in some view
// that it had before: it was removed, or is not healthy any more. Clients
// go on sending there until they know.
func losses(hosts *stepHosts, host string, c catalog.ServiceChange) map[uint32]bool {
	lost := map[uint32]bool{}
	if c.Old != nil && c.New != nil && sameStanding(c.Old, c.New) {
		for id := range c.Endpoints {
			if serves(c.Old, id) && (!serves(c.New, id) || confined(c.New) && moved(c, id)) {
				lost[id.ServicePort] = true
			}
		}
		for _, port := range c.Old.Ports {
			lost[port.Number] = lost[port.Number] || confined(c.New) && c.New.Traffic != c.Old.Traffic
		}
		return lost
	}
	// Views change over to another service of the host, or from one.
	if c.Old != nil {
		for _, port := range c.Old.Ports {
			lost[port.Number] = c.Old.Endpoints(port.Number).Counts().Healthy > 0
		}
	}
	for port, others := range hosts.of(host).healthy {
		if c.New != nil && c.New.Endpoints(port).Counts().Healthy > 0 {
			others--
		}
		lost[port] = lost[port] || others > 0
	}
	return lost
}

// confined reports whether clients use some endpoints of a service, and no other.
func confined(s *catalog.Service) bool { return s.Traffic.NodeLocal || s.Traffic.ClusterLocal }

// serves reports whether a service has an endpoint and it is healthy.
func serves(s *catalog.Service, id catalog.EndpointID) bool {
	e, ok := s.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	return ok && e.Health == model.Healthy
}

// moved reports whether an endpoint is on another node than before.
func moved(c catalog.ServiceChange, id catalog.EndpointID) bool {
	was, _ := c.Old.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	is, _ := c.New.Endpoints(id.ServicePort).Get(id.Address, id.Port)
	of, _ := was.Labels.Get(lb.ClusterLabel)
	now, _ := is.Labels.Get(lb.ClusterLabel)
	return was.Node != is.Node || of != now
}
