package wire

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsfamilyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
)

// Istio's defaults.
const (
	dnsRefreshRate = 60 * time.Second
	dnsJitter      = 100 * time.Millisecond
)

// Family is the IP family that names are resolved to.
type Family uint8

// The families.
const (
	AnyFamily Family = iota // of Envoys that do not declare their addresses
	IPv4
	IPv6
)

// Resolver is how Envoys resolve names.
type Resolver struct {
	Family   Family
	Outdated bool // they lack [names.DNSCluster]
}

// lookup returns V4_PREFERRED for Envoys without addresses, which istiod would reject: such an
// Envoy may have only IPv6.
func (f Family) lookup() clusterv3.Cluster_DnsLookupFamily {
	switch f {
	case IPv4:
		return clusterv3.Cluster_V4_ONLY
	case IPv6:
		return clusterv3.Cluster_V6_ONLY
	default:
		return clusterv3.Cluster_V4_PREFERRED
	}
}

// configure makes a cluster resolve names: a single one to its current address, or all
// addresses of each.
func (r Resolver) configure(m *clusterv3.Cluster, single bool) {
	if r.Outdated {
		r.configureFields(m, single)
		return
	}
	m.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: names.DNSCluster,
		TypedConfig: packed(&dnsv3.DnsCluster{
			DnsRefreshRate:               durationpb.New(dnsRefreshRate),
			RespectDnsTtl:                true,
			DnsJitter:                    durationpb.New(dnsJitter),
			DnsLookupFamily:              dnsfamilyv3.DnsLookupFamily(dnsfamilyv3.DnsLookupFamily_value[r.Family.lookup().String()]),
			AllAddressesInSingleEndpoint: single,
		}),
	}}
}

// configureFields is configure for Envoys without [names.DNSCluster].
func (r Resolver) configureFields(m *clusterv3.Cluster, single bool) {
	setType(m, clusterv3.Cluster_STRICT_DNS)
	if single {
		setType(m, clusterv3.Cluster_LOGICAL_DNS)
	}
	m.DnsLookupFamily = r.Family.lookup()
	m.RespectDnsTtl = true                            //nolint:staticcheck // see above
	m.DnsRefreshRate = durationpb.New(dnsRefreshRate) //nolint:staticcheck // see above
	m.DnsJitter = durationpb.New(dnsJitter)           //nolint:staticcheck // see above
}
