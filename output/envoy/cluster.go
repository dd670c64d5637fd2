package envoy

import (
	"cmp"
	"iter"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/lb"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// cluster is the subject of a Cluster. That of a STATIC service has no endpoints: they are in
// the load assignment. So a change of endpoints does not make Envoy warm the cluster again.
type cluster struct {
	clusterSlot
	speaks    wire.HTTPVersion
	external  bool               // it is outside of the mesh
	target    uint32             // where originalDST goes instead of the original port; 0 if nowhere else
	endpoints *catalog.Endpoints // of DNS forms: the names are part of the cluster
	sockets   bool               // some endpoints are unix sockets; false for forms other than eds
	policy    *policy.Policy
	order     lb.Order // of strictDNS
	affinity  model.Affinity
	shares    bool // the weights of endpoints are shares of a split
	matched   bool // TLS is only for the endpoints that are called by mutual TLS

	tls        *policy.UpstreamTLS // nil for none
	identities string              // of which a certificate must have one, one a line
}

// clusterSlot identifies a variant of a cluster.
type clusterSlot struct {
	slot
	grpc     bool
	resolver node.Resolver // of DNS forms for Envoys
	// from and avoids are as in assignmentSlot: of strictDNS.
	from   lb.Location
	avoids lb.Avoided
}

// Slot implements [world.Subject].
func (s clusterSlot) Slot() any { return s }

// clusterOf is the cluster for Envoys that say nothing of themselves.
func clusterOf(at slot, s *catalog.Service, port model.Port) cluster {
	c := cluster{clusterSlot: clusterSlot{slot: at}, speaks: wire.HTTPVersionOf(port.Protocol), external: s.Location == model.MeshExternal, policy: policy.Istio.Defaults, affinity: s.Traffic.Affinity, shares: s.Split != nil}
	switch at.form {
	case reach.StrictDNS, reach.LogicalDNS:
		c.endpoints = s.Endpoints(port.Number)
	case reach.OriginalDST:
		// An address of a cluster has the port of the service, and an instance its own.
		if toAddress := s.ResolutionAt(port.Number) == model.ResolutionNone || !s.Traffic.ClusterLocal && !s.Traffic.Headless; toAddress && port.TargetPort != port.Number {
			c.target = port.TargetPort
		}
	case reach.EDS:
		c.sockets = s.Endpoints(port.Number).Counts().Sockets > 0
	case reach.NoForm:
	}
	return c
}

func (c cluster) resolves() bool { return c.form == reach.StrictDNS || c.form == reach.LogicalDNS }

// Refers implements [world.Referrer].
func (c cluster) Refers(to string) iter.Seq[string] {
	if to == wire.EndpointURL && c.form == reach.EDS {
		return one(c.clusterName())
	}
	if to == wire.SecretURL {
		return c.tls.Secrets()
	}
	return nothing
}

// Encode implements [world.Subject].
func (c cluster) Encode() world.Encoded {
	m := &wire.Cluster{
		Name: c.clusterName(), Host: c.key.Host, Namespace: c.key.Namespace, GRPC: c.grpc, Discovery: discoveryOf(c.form),
		PortOverride: c.target, HTTP: c.speaks, External: c.external, Sockets: c.sockets, Shares: c.shares, Policy: c.policy, TLS: c.upstreamTLS(),
	}
	if c.resolves() {
		m.Resolver = wire.Resolver{Family: wireFamily(c.resolver.Family), Outdated: c.resolver.Outdated}
		d := &lb.Draft{Of: c.subset, From: c.from, Order: c.order, Avoids: c.avoids, Resolves: true}
		d.Name = m.Name
		d.Fill(c.endpoints, reach.NameAddressFor(c.resolver.Family))
		m.Names = &d.Assignment
		if len(d.Endpoints) == 0 { // LOGICAL_DNS takes exactly one name
			m.Discovery = wire.StrictDNS
		}
	}
	return encode(m.Name, wire.ClusterURL, m.Message())
}

// upstreamTLS returns the TLS of the cluster's connections; nil for none.
func (c cluster) upstreamTLS() *wire.TLS {
	if c.tls == nil {
		return nil
	}
	t := &wire.TLS{UpstreamTLS: c.tls, ServerName: serverName(c.slot, c.tls), Matched: c.matched}
	if within, all := strings.CutSuffix(c.identities, reach.AnyIdentity); all && c.tls.Served() {
		t.Within = within
	} else {
		t.Identities = strings.FieldsFunc(c.identities, func(r rune) bool { return r == '\n' })
	}
	return t
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

// serverName is the server name in a handshake. A host with a wildcard has none.
func serverName(s slot, u *policy.UpstreamTLS) string {
	switch host := s.key.Host; {
	case u.OfMesh():
		name, _ := names.Mesh(host, s.port, s.subset.String())
		return name
	case u.SNI != "":
		return u.SNI
	case strings.HasPrefix(host, "*"):
		return ""
	default:
		return host
	}
}

// securedBy sets the TLS of a cluster by the policy of its host.
func securedBy(c cluster, u *policy.UpstreamTLS, s *catalog.Service, trustDomain string) cluster {
	if u = reach.TLSFor(u, s.ServiceDefinition); u != nil {
		c.tls, c.identities = u, reach.Identities(u, s, s.Endpoints(c.port), trustDomain)
	}
	return c
}

// mutuallySecured sets the TLS of a cluster whose endpoints may take mutual TLS. The TLS of a
// cluster does not depend on which endpoints take it, so that an endpoint with a sidecar changes
// only assignments. Of a headless service no endpoint is known, so all are called alike.
func mutuallySecured(c cluster, settings *policy.Prepared, s *catalog.Service, port model.Port) cluster {
	modes := settings.Mesh.In(s.Key.Namespace)
	switch {
	case modes == nil || s.Location == model.MeshExternal || s.Traffic.ClusterLocal:
		return c
	case c.form == reach.EDS:
		c.matched = true
	case c.form != reach.OriginalDST || modes.Of(cmp.Or(port.TargetPort, port.Number)) != policy.Strict:
		return c
	}
	return securedBy(c, settings.Mesh.Upstream, s, settings.TrustDomain)
}

// choice is how the clients of a view choose among the endpoints of a service port.
type choice struct {
	order  lb.Order
	from   lb.Location // as far as it matters in the order
	avoids lb.Avoided
}

func choiceOf(w *state, v View, p portOf) choice {
	o := lb.OrderOf(p.Definition, p.port.Number, p.policy)
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

func wireFamily(f node.Family) wire.Family {
	switch f {
	case node.IPv4:
		return wire.IPv4
	case node.IPv6:
		return wire.IPv6
	default:
		return wire.AnyFamily
	}
}

// assignment is the subject of a ClusterLoadAssignment. It does not depend on the service's
// definition.
type assignment struct {
	assignmentSlot
	endpoints *catalog.Endpoints
	order     lb.Order
}

// assignmentSlot identifies a variant of a load assignment.
type assignmentSlot struct {
	slot
	byWeight bool                   // the weights of endpoints are those of localities
	from     lb.Location            // of the clients, as far as it matters in the order
	via      *policy.RemoteGateways // to endpoints of other networks; nil if there are none
	avoids   lb.Avoided             // by the client, which is an edge
	mutual   *policy.MutualPorts    // of the service's namespace, for Envoys
}

// Slot implements [world.Subject].
func (s assignmentSlot) Slot() any { return s }

// Encode implements [world.Subject].
func (a assignment) Encode() world.Encoded {
	d := &lb.Draft{Of: a.subset, From: a.from, Order: a.order, Via: a.via, Avoids: a.avoids, Mutual: a.mutual}
	d.Name = a.clusterName()
	if a.byWeight {
		d.GroupByWeight(a.endpoints)
	}
	d.Fill(a.endpoints, reach.IPAddress)
	return resourceOf(d.Name, d.Any())
}
