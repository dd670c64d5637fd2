package wire

import (
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
)

// PassthroughCluster returns the cluster of connections to their original destination.
func PassthroughCluster() *clusterv3.Cluster {
	m := plainCluster(names.Passthrough)
	setType(m, clusterv3.Cluster_ORIGINAL_DST)
	m.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	m.TypedExtensionProtocolOptions = Downstream.options()
	m.CircuitBreakers = noLimits()
	return m
}

// BlackHoleCluster returns the cluster without endpoints.
func BlackHoleCluster() *clusterv3.Cluster {
	m := plainCluster(names.BlackHole)
	setType(m, clusterv3.Cluster_STATIC)
	return m
}

func plainCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(connectTimeout), AltStatName: name + ";"}
}

// InboundCluster returns the cluster of a port of an Envoy's own workload, or of all ports
// for port 0. It goes to the original destination, so it never changes. The Envoy calls
// from the given addresses, of which there is at least one.
func InboundCluster(port uint32, sources ...string) *clusterv3.Cluster {
	m := plainCluster(names.InboundPassthrough)
	if port != 0 {
		m = plainCluster(names.InboundCluster(port))
	}
	m.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	m.TypedExtensionProtocolOptions = Downstream.options()
	m.CircuitBreakers = noLimits()
	m.UpstreamBindConfig = &corev3.BindConfig{SourceAddress: source(sources[0])}
	for _, further := range sources[1:] {
		m.UpstreamBindConfig.ExtraSourceAddresses = append(m.UpstreamBindConfig.ExtraSourceAddresses, &corev3.ExtraSourceAddress{Address: source(further)})
	}
	setType(m, clusterv3.Cluster_ORIGINAL_DST)
	return m
}

func source(address string) *corev3.SocketAddress {
	return &corev3.SocketAddress{Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 0}}
}

// BindCluster returns the cluster of a port of a workload with an explicit bind. Its endpoint is
// the address at which the workload itself listens.
func BindCluster(port uint32, to netip.AddrPort) *clusterv3.Cluster {
	m := plainCluster(names.InboundCluster(port))
	m.TypedExtensionProtocolOptions = Downstream.options()
	m.CircuitBreakers = noLimits()
	m.LoadAssignment = &endpointv3.ClusterLoadAssignment{
		ClusterName: m.GetName(),
		Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: SocketAddress(to.Addr().String(), uint32(to.Port())),
			}},
			LoadBalancingWeight: wrapperspb.UInt32(1),
		}}}},
	}
	setType(m, clusterv3.Cluster_STATIC)
	return m
}
