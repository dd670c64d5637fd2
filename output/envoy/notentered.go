package envoy

import (
	"cmp"
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Why gateways do not lead to endpoints.
const (
	grpcNetwork  = "gRPC does not name ports as gateways know them"
	plainTraffic = "gateways take TLS of mode ISTIO_MUTUAL alone, which outputs.xds.envoy does not set for the host"
	outOfMesh    = "gateways lead to services of the location MESH_INTERNAL alone"
	noMeshName   = "gateways have no name for the host, which is a wildcard or too long"
)

// NotOffered returns what says which services clients of a kind do not get, as
// [NotOffered] does, and how many endpoints only those of the same network do.
func (s *Settings) NotOffered() func(*catalog.Service, string) string {
	p := s.prepare()
	return func(service *catalog.Service, kind string) string {
		return cmp.Or(NotOffered(service, kind), p.notEntered(service, kind))
	}
}

func (s *settings) notEntered(service *catalog.Service, kind string) string {
	if s.networks == nil || service.Resolution != model.ResolutionStatic {
		return ""
	}
	for _, port := range service.Ports {
		reason := s.notLedTo(kind, service, port.Number)
		endpoints := service.Endpoints(port.Number)
		if reason == "" || endpoints.Counts().Networked == 0 {
			continue
		}
		behind := 0
		for e := range endpoints.All() {
			if _, ok := s.networks.gateways[e.Network]; ok && e.Health == model.Healthy {
				behind++
			}
		}
		if behind > 0 {
			return fmt.Sprintf("port %d: %d of the endpoints are given to clients of their own network only: %s", port.Number, behind, reason)
		}
	}
	return ""
}

// notLedTo says why gateways do not lead clients of a kind to a port; empty if they do.
func (s *settings) notLedTo(kind string, service *catalog.Service, port uint32) string {
	_, named := meshName(service.Key.Host, port, nil)
	switch {
	case kind == KindEnvoy && !s.of(service.Key.Host).TLS.ofMesh():
		return plainTraffic
	case kind == KindEnvoy && service.Location == model.MeshExternal:
		return outOfMesh
	case kind == KindEnvoy && !named:
		return noMeshName
	case isGRPC(kind):
		return grpcNetwork
	default:
		return ""
	}
}
