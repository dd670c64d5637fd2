package envoy

import (
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// cluster is what a Cluster is made of. Of a STATIC service that is little: its
// endpoints arrive as a load assignment, so a change of them, which would make
// Envoy warm the cluster anew, is none of its business.
type cluster struct {
	clusterSlot
	speaks    wire.HTTPVersion
	external  bool               // it is outside of the mesh
	target    uint32             // where originalDST goes instead of the original port; 0 if nowhere else
	endpoints *catalog.Endpoints // of DNS forms: the names are part of the cluster
	sockets   bool               // some endpoints are unix sockets; of what is not eds or does not matter, false
	policy    *policy.Policy
	order     lb.Order // of strictDNS
	affinity  model.Affinity

	tls        *policy.UpstreamTLS // nil for none
	identities string              // of which a certificate must have one, one a line
}

// clusterSlot tells the variants of a cluster apart.
type clusterSlot struct {
	slot
	grpc     bool
	resolver node.Resolver // of DNS forms for Envoys
	// from and avoids are as in assignmentSlot: of strictDNS.
	from   lb.Location
	avoids lb.Avoided
}

// Slot implements [push.Subject].
func (s clusterSlot) Slot() any { return s }

// clusterOf is the cluster for Envoys that say nothing of themselves.
func clusterOf(at slot, s *catalog.Service, port model.Port) cluster {
	c := cluster{clusterSlot: clusterSlot{slot: at}, speaks: wire.HTTPVersionOf(port.Protocol), external: s.Location == model.MeshExternal, policy: policy.Istio.Defaults, affinity: s.Traffic.Affinity}
	switch at.form {
	case reach.StrictDNS, reach.LogicalDNS:
		c.endpoints = s.Endpoints(port.Number)
	case reach.OriginalDST:
		if port.TargetPort != port.Number && !s.Traffic.ClusterLocal { // its address has the port of the service
			c.target = port.TargetPort
		}
	case reach.EDS:
		c.sockets = s.Endpoints(port.Number).Counts().Sockets > 0
	case reach.NoForm:
	}
	return c
}

func (c cluster) resolves() bool { return c.form == reach.StrictDNS || c.form == reach.LogicalDNS }

// Refers implements [push.Referrer].
func (c cluster) Refers(to string) iter.Seq[string] {
	if to == wire.EndpointURL && c.form == reach.EDS {
		return one(c.clusterName())
	}
	if to == wire.SecretURL {
		return c.tls.Secrets()
	}
	return nothing
}

// Encode implements [push.Subject].
func (c cluster) Encode() push.Encoded {
	m := &wire.Cluster{
		Name: c.clusterName(), Host: c.key.Host, Namespace: c.key.Namespace, GRPC: c.grpc, Discovery: discoveryOf(c.form),
		PortOverride: c.target, HTTP: c.speaks, External: c.external, Sockets: c.sockets, Policy: c.policy, TLS: c.upstreamTLS(),
	}
	if c.resolves() {
		m.Resolver = wire.Resolver{Family: wireFamily(c.resolver.Family), Outdated: c.resolver.Outdated}
		d := &lb.Draft{Of: c.subset, From: c.from, Order: c.order, Avoids: c.avoids, Resolves: true}
		d.Name = m.Name
		d.Fill(c.endpoints, reach.NameAddress)
		m.Names = &d.Assignment
	}
	return encode(m.Name, wire.ClusterURL, m.Message())
}

// upstreamTLS returns the TLS of the cluster's connections; nil for none.
func (c cluster) upstreamTLS() *wire.TLS {
	if c.tls == nil {
		return nil
	}
	identities := strings.FieldsFunc(c.identities, func(r rune) bool { return r == '\n' })
	return &wire.TLS{UpstreamTLS: c.tls, ServerName: serverName(c.slot, c.tls), Identities: identities}
}

func discoveryOf(f reach.Form) wire.Discovery {
	switch f {
	case reach.StrictDNS:
		return wire.StrictDNS
	case reach.LogicalDNS:
		return wire.LogicalDNS
	case reach.OriginalDST:
		return wire.OriginalDst
	default:
		return wire.EDS
	}
}
