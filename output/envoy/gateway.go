package envoy

import (
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Workloads of a mesh say in a handshake which port they want to reach, or which subset of
// it, in Istio's form outbound_.PORT_.SUBSET_.HOST. A gateway has clusters of these names.

// entered yields the names of a port and its subsets for connections through a gateway.
func entered(host string, port uint32, subsets []*policy.Selector) iter.Seq2[*policy.Selector, string] {
	return func(yield func(*policy.Selector, string) bool) {
		for _, of := range append([]*policy.Selector{nil}, subsets...) {
			if name, ok := names.Mesh(host, port, of.String()); ok && !yield(of, name) {
				return
			}
		}
	}
}

// leadsOn reports whether an Envoy of a view is a gateway to this network.
func leadsOn(s *policy.Prepared, v View) bool {
	return s.Gateway && v.Kind == reach.KindEnvoy && v.proxy.Role == node.Edge
}

// enteredNames yields the clusters and assignments of a gateway.
func enteredNames(w *state, v View) iter.Seq[string] {
	if !leadsOn(w.settings, v) {
		return nothing
	}
	return func(yield func(string) bool) {
		for s := range w.snapshot.Visible(v.viewer()) {
			if !w.settings.PassesThrough(s.Key.Host) {
				continue
			}
			p := w.settings.Of(s.Key.Host)
			for _, port := range s.Ports {
				for of, name := range entered(s.Key.Host, port.Number, w.settings.Subsets(p)) {
					if isEntered(s, port, of, p) && !yield(name) {
						return
					}
				}
			}
		}
	}
}

// isEntered reports whether a gateway leads to a port. It carries only TLS of the mesh, so that
// every caller is authenticated.
func isEntered(s *catalog.Service, port model.Port, of *policy.Selector, p *policy.Policy) bool {
	f := reach.SubsetForm(of, reach.KindEnvoy, s, port)
	return f != reach.NoForm && f != reach.OriginalDST && p.TLS.OfMesh() && port.Protocol != "UDP" && s.Location != model.MeshExternal && !s.Traffic.ClusterLocal
}

// findEntered returns a resource of a gateway. It is without TLS, which passes through, and
// without endpoints of networks that have gateways of their own.
func findEntered(w *state, v View, r world.Row, name string) (world.Subject, bool) {
	host, number, subset, ok := names.ParseMesh(name)
	if !ok || !leadsOn(w.settings, v) {
		return nil, false
	}
	s, ok := w.snapshot.Resolve(v.viewer(), host)
	if !ok || !w.settings.PassesThrough(s.Key.Host) {
		return nil, false
	}
	port, ok := s.Port(number)
	p := w.settings.Of(host)
	of, known := w.settings.SubsetFold(p, subset)
	if written, _ := names.Mesh(host, number, of.String()); !ok || !known || written != name || !isEntered(s, port, of, p) {
		return nil, false
	}
	found := portOf{s, port, of, reach.SubsetForm(of, reach.KindEnvoy, s, port), p}
	at, by := found.slot(r), choiceOf(w, v, found)
	at.entered = true
	if r == EndpointType {
		if at.form != reach.EDS {
			return nil, false
		}
		via := gatewaysTo(v, s, number, of, p)
		if via != nil && via.Closed != nil {
			via = via.Closed
		}
		return assignmentChosen(v.Kind, by, via, assignment{assignmentSlot: assignmentSlot{slot: at.common()}, endpoints: s.Endpoints(number)}), true
	}
	c := clusterOf(at, s, port)
	c.speaks = wire.AnyHTTP // which is none: it carries bytes
	return clusterChosen(v, by, c), true
}

// Why gateways do not lead to endpoints.
const (
	grpcNetwork  = "gRPC clients do not set the SNI that gateways route by"
	plainTraffic = "gateways accept only TLS of mode ISTIO_MUTUAL; set tls.mode of the host in outputs.xds.envoy"
	outOfMesh    = "gateways route only to services with location MESH_INTERNAL"
	noMeshName   = "the host is a wildcard or too long for the SNI that gateways route by"
)

func notEntered(s *policy.Prepared, service *catalog.Service, kind string) string {
	if s.Networks == nil {
		return ""
	}
	for _, port := range service.Ports {
		if service.ResolutionAt(port.Number) != model.ResolutionStatic {
			continue
		}
		reason := notLedTo(s, kind, service, port.Number)
		endpoints := service.Endpoints(port.Number)
		if reason == "" || endpoints.Counts().Networked == 0 {
			continue
		}
		behind := 0
		for e := range endpoints.All() {
			if s.Networks.HasGateways(e.Network) && e.Health == model.Healthy {
				behind++
			}
		}
		if behind > 0 {
			return fmt.Sprintf("port %d: %d of the endpoints are given to no client of another network: %s", port.Number, behind, reason)
		}
	}
	return ""
}

// notLedTo returns why gateways do not lead clients of a kind to a port; empty if they do.
func notLedTo(s *policy.Prepared, kind string, service *catalog.Service, port uint32) string {
	_, named := names.Mesh(service.Key.Host, port, "")
	switch {
	case kind == reach.KindEnvoy && !s.Of(service.Key.Host).TLS.OfMesh():
		return plainTraffic
	case kind == reach.KindEnvoy && service.Location == model.MeshExternal:
		return outOfMesh
	case kind == reach.KindEnvoy && !named:
		return noMeshName
	case reach.IsGRPC(kind):
		return grpcNetwork
	default:
		return ""
	}
}
