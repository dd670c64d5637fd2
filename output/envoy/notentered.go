package envoy

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// Why gateways do not lead to endpoints.
const (
	grpcNetwork  = "gRPC does not name ports as gateways know them"
	plainTraffic = "gateways take TLS of mode ISTIO_MUTUAL alone, which outputs.xds.envoy does not set for the host"
	outOfMesh    = "gateways lead to services of the location MESH_INTERNAL alone"
	noMeshName   = "gateways have no name for the host, which is a wildcard or too long"
)

func notEntered(s *policy.Prepared, service *catalog.Service, kind string) string {
	if s.Networks == nil || service.Resolution != model.ResolutionStatic {
		return ""
	}
	for _, port := range service.Ports {
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
			return fmt.Sprintf("port %d: %d of the endpoints are given to clients of their own network only: %s", port.Number, behind, reason)
		}
	}
	return ""
}

// notLedTo says why gateways do not lead clients of a kind to a port; empty if they do.
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
