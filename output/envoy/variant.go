package envoy

import (
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// variant is what the clients of a view get for a subject: those of equal views
// share one. What does not matter to a client is not part of its variant.
func (v View) variant(subject push.Subject) push.Subject {
	switch s := subject.(type) {
	case cluster:
		return s.variantFor(v)
	case assignment:
		return s.variantFor(v)
	case route:
		s.policy = v.settings.OrIstio().Of(s.key.Host)
		return s
	default:
		return subject
	}
}

func (c cluster) variantFor(v View) cluster {
	c.policy = v.settings.OrIstio().For(c.key.Host, c.affinity)
	c.sockets = c.sockets && c.policy.TCPKeepalive != nil && !isGRPC(v.Kind)
	switch {
	case isGRPC(v.Kind):
		c.grpc, c.external = true, false
		if c.speaks == wire.Downstream {
			c.speaks = wire.AnyHTTP
		}
	case c.resolves():
		c.resolver = v.resolver
	}
	if c.resolves() {
		c.avoids = v.avoids
	}
	if c.avoids != (avoided{}) {
		c.form = strictDNS // which takes less than one name, too
	}
	if c.form == strictDNS {
		c.from, c.order = v.place.as(v.order), v.order
	}
	return c
}

// variantFor makes weights of endpoints those of localities for gRPC, which obeys
// no others. Where all endpoints of a locality weigh the same, both are one.
func (a assignment) variantFor(v View) assignment {
	a.byWeight = isGRPC(v.Kind) && a.endpoints.Uneven()
	a.from, a.order, a.via, a.avoids = v.place.as(v.order), v.order, v.via, v.avoids
	return a
}
