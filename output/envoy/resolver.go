package envoy

import (
	"net/netip"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsfamilyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/push"
)

// Istio's defaults.
const (
	dnsRefreshRate = 60 * time.Second
	dnsJitter      = 100 * time.Millisecond
)

// DNSCluster is the extension of newer Envoys that has the settings of name
// resolution. In older ones they are fields of the cluster, of which a newer Envoy
// warns at every use.
const DNSCluster = "envoy.cluster.dns"

// resolver is how the Envoys of a view resolve names.
type resolver struct {
	family   family
	outdated bool // they do not have [DNSCluster]
}

// family is which addresses are asked for.
type family uint8

const (
	unknownFamily family = iota // the Envoy says nothing of its own addresses
	ipv4
	ipv6
	both
)

func resolverOf(c push.Client) resolver {
	return resolver{family: familyOf(c.Addresses).resolved(), outdated: !slices.Contains(c.Extensions, DNSCluster)}
}

// familyOf is the family of a workload's addresses. A text that is no address counts as IPv4.
func familyOf(addresses []string) family {
	of := unknownFamily
	for _, text := range addresses {
		is := ipv6
		if ip, err := netip.ParseAddr(text); err != nil || ip.Unmap().Is4() {
			is = ipv4
		}
		if of != unknownFamily && of != is {
			return both
		}
		of = is
	}
	return of
}

// resolved is the family that names are resolved to. As with istiod it is IPv4 for a workload
// of both, as long as Istio's dual stack is not switched on.
func (f family) resolved() family {
	if f == both {
		return ipv4
	}
	return f
}

// lookup is V4_PREFERRED for Envoys that istiod would reject: such an Envoy may be
// one with IPv6 alone.
func (f family) lookup() clusterv3.Cluster_DnsLookupFamily {
	switch f {
	case ipv4:
		return clusterv3.Cluster_V4_ONLY
	case ipv6:
		return clusterv3.Cluster_V6_ONLY
	default:
		return clusterv3.Cluster_V4_PREFERRED
	}
}

// configure makes a cluster resolve names: one that is connected to as it
// resolves, or all addresses of each.
func (r resolver) configure(m *clusterv3.Cluster, single bool) {
	if r.outdated {
		r.configureFields(m, single)
		return
	}
	m.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: DNSCluster,
		TypedConfig: packed(&dnsv3.DnsCluster{
			DnsRefreshRate:               durationpb.New(dnsRefreshRate),
			RespectDnsTtl:                true,
			DnsJitter:                    durationpb.New(dnsJitter),
			DnsLookupFamily:              dnsfamilyv3.DnsLookupFamily(dnsfamilyv3.DnsLookupFamily_value[r.family.lookup().String()]),
			AllAddressesInSingleEndpoint: single,
		}),
	}}
}

// configureFields is the same for Envoys before [DNSCluster].
func (r resolver) configureFields(m *clusterv3.Cluster, single bool) {
	setType(m, clusterv3.Cluster_STRICT_DNS)
	if single {
		setType(m, clusterv3.Cluster_LOGICAL_DNS)
	}
	m.DnsLookupFamily = r.family.lookup()
	m.RespectDnsTtl = true                            //nolint:staticcheck // see above
	m.DnsRefreshRate = durationpb.New(dnsRefreshRate) //nolint:staticcheck // see above
	m.DnsJitter = durationpb.New(dnsJitter)           //nolint:staticcheck // see above
}
