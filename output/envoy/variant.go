package envoy

import (
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// choice is how the clients of a view choose among the endpoints of a service port.
type choice struct {
	order  lb.Order
	from   lb.Location // as far as it matters in the order
	avoids lb.Avoided
}

func choiceOf(w *state, v View, p portOf) choice {
	o := lb.OrderOf(p.Definition, p.policy)
	return choice{o, v.place.Within(o), lb.AvoidedIn(w.settings, v.proxy, p.Key.Host, p.Endpoints(p.port.Number))}
}

// clusterChosen is the cluster for the clients of a view. Clients of equal views share it, so
// it contains nothing that does not matter to them.
func clusterChosen(v View, by choice, c cluster) cluster {
	c.policy = v.settings.OrIstio().For(c.key.Host, c.affinity)
	c.sockets = c.sockets && c.policy.TCPKeepalive != nil && !reach.IsGRPC(v.Kind)
	switch {
	case reach.IsGRPC(v.Kind):
		c.grpc, c.external = true, false
		if c.speaks == wire.Downstream {
			c.speaks = wire.AnyHTTP
		}
	case c.resolves():
		c.resolver = v.resolver
	}
	if c.resolves() {
		c.avoids = by.avoids
	}
	if c.avoids != (lb.Avoided{}) {
		c.form = reach.StrictDNS // which takes less than one name, too
	}
	if c.form == reach.StrictDNS {
		c.from, c.order = by.from, by.order
	}
	return c
}

// assignmentChosen is the load assignment for a kind of clients. gRPC obeys only the weights of
// localities, so endpoints of other weights get localities of their own. Where all endpoints
// of a locality have the same weight, kinds share the assignment.
func assignmentChosen(kind string, by choice, via *policy.RemoteGateways, a assignment) assignment {
	a.byWeight = reach.IsGRPC(kind) && a.endpoints.Uneven()
	a.from, a.order, a.via, a.avoids = by.from, by.order, via, by.avoids
	return a
}
