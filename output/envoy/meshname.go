package envoy

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
)

// Workloads of a mesh say in a handshake which port they want to reach, or which subset of
// it, in Istio's form outbound_.PORT_.SUBSET_.HOST. A gateway has clusters of these names.

const (
	meshNamePrefix    = "outbound_."
	meshNameSeparator = "_."
)

// meshName is that name. There is none for a host with a wildcard, or where it would not be
// read as it was written: Envoys put such names into lower case.
func meshName(host string, port uint32, of *subset) (name string, ok bool) {
	written, ok := sniOf(host)
	name = meshNamePrefix + strconv.FormatUint(uint64(port), 10) + meshNameSeparator + strings.ToLower(of.String()) + meshNameSeparator + host
	if !ok || written != host || strings.HasPrefix(host, "*") || strings.Contains(of.String(), meshNameSeparator) ||
		len(name) > longestSNI || strings.ContainsFunc(name, isNotOfNames) {
		return "", false
	}
	return name, true
}

// parseMeshName splits what meshName writes.
func parseMeshName(name string) (host string, port uint32, subset string, ok bool) {
	rest, ours := strings.CutPrefix(name, meshNamePrefix)
	digits, rest, first := strings.Cut(rest, meshNameSeparator)
	subset, host, second := strings.Cut(rest, meshNameSeparator)
	if !ours || !first || !second || host == "" {
		return "", 0, "", false
	}
	port, ok = parsePort(digits)
	return host, port, subset, ok
}

// entered yields the names of a port and its subsets for whoever comes through a gateway.
func entered(host string, port uint32, subsets []*subset) iter.Seq2[*subset, string] {
	return func(yield func(*subset, string) bool) {
		for _, of := range append([]*subset{nil}, subsets...) {
			if name, ok := meshName(host, port, of); ok && !yield(of, name) {
				return
			}
		}
	}
}

// enters reports whether other networks may call a host.
func (s *settings) enters(host string) bool {
	return slices.ContainsFunc(s.edge, func(p *EdgePort) bool { return p.Protocol == edgeAutoPassthrough && p.exposes(host) })
}

// leadsOn reports whether an Envoy of a view is a gateway to this network.
func (s *settings) leadsOn(v View) bool {
	return s.passes && v.Kind == KindEnvoy && v.proxy.role == edge
}

// enteredNames yields the clusters and assignments of a gateway.
func enteredNames(w *World, v View) iter.Seq[string] {
	if !w.settings.leadsOn(v) {
		return nothing
	}
	return func(yield func(string) bool) {
		for s := range w.snapshot.Visible(v.viewer()) {
			if !w.settings.enters(s.Key.Host) {
				continue
			}
			policy := w.settings.of(s.Key.Host)
			for _, port := range s.Ports {
				for of, name := range entered(s.Key.Host, port.Number, w.settings.subsets[policy]) {
					if isEntered(s, port, of, policy) && !yield(name) {
						return
					}
				}
			}
		}
	}
}

// isEntered reports whether a gateway leads to a port. It leads to nobody who could be
// called without proof of who calls: what it carries is TLS of the mesh.
func isEntered(s *catalog.Service, port model.Port, of *subset, p *Policy) bool {
	f := of.formOf(KindEnvoy, s, port)
	return f != noForm && f != originalDST && p.TLS.ofMesh() && port.Protocol != "UDP" && s.Location != model.MeshExternal && !s.Traffic.ClusterLocal
}

// findEntered returns a resource of a gateway. It is without TLS, which passes through, and
// without endpoints of networks that have gateways of their own.
func findEntered(w *World, v View, r push.Row, name string) (push.Subject, bool) {
	host, number, subset, ok := parseMeshName(name)
	if !ok || !w.settings.leadsOn(v) {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), host)
	if !ok || !w.settings.enters(s.Key.Host) {
		return nil, false
	}
	port, ok := s.Port(number)
	policy := w.settings.of(host)
	of, known := w.settings.enteredSubset(policy, subset)
	if written, _ := meshName(host, number, of); !ok || !known || written != name || !isEntered(s, port, of, policy) {
		return nil, false
	}
	at := slot{row: r, key: s.Key, port: number, form: of.formOf(KindEnvoy, s, port), subset: of, entered: true}
	v.order = orderOf(s.Definition, policy)
	v.avoids = w.settings.avoidedIn(v.proxy, s.Key.Host, s.Endpoints(number))
	if r == EndpointType {
		if at.form != eds {
			return nil, false
		}
		if v.via = v.crossingTo(s, number, of, policy); v.via != nil && v.via.closed != nil {
			v.via = v.via.closed
		}
		return v.variant(assignment{assignmentSlot: assignmentSlot{slot: at.common()}, endpoints: s.Endpoints(number)}), true
	}
	c := clusterOf(at, s, port)
	c.speaks = anyHTTP // which is none: it carries bytes
	return v.variant(c), true
}

// enteredSubset returns the subset of a name in lower case.
func (s *settings) enteredSubset(p *Policy, name string) (*subset, bool) {
	if name == "" {
		return nil, true
	}
	for _, of := range s.subsets[p] {
		if strings.ToLower(of.name) == name {
			return of, true
		}
	}
	return nil, false
}
