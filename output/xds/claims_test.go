package xds_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/model"
	envoynames "github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// Which addresses an Envoy resolves names to follows from its own, as it does
// with istiod.
func TestAddressFamilyIsTheProxys(t *testing.T) {
	r := newRig(t, setup{})
	names := service("shop", "names.example")
	spec, _ := names.Spec.(model.Service)
	spec.Resolution = model.ResolutionDNS
	names.Spec = spec
	r.put(names, endpoint("shop", "names.example", "one", "one.example.com"))
	const istios = "sidecar~10.0.0.7~web.shop~shop.svc.cluster.local"
	for _, test := range []struct{ id, addresses, family string }{
		{"some", "", "V4_PREFERRED"},
		{"some", "10.0.0.1", "V4_ONLY"},
		{"some", "2001:db8::1", "V6_ONLY"},
		{"some", "2001:db8::1,fe80::1%eth0", "V6_ONLY"},
		{"some", "2001:db8::1,10.0.0.1", "V4_PREFERRED"},
		{istios, "", "V4_ONLY"},
		{istios, "2001:db8::1", "V6_ONLY"},
		{istios, "2001:db8::1,not an address", "V4_ONLY"},
		{"sidecar~2001:db8::7~web.shop~shop.svc.cluster.local", "", "V6_ONLY"},
		{"sidecar~~web.shop~shop.svc.cluster.local", "", "V4_PREFERRED"},
	} {
		for _, extensions := range [][]*corev3.Extension{nil, {{Name: "other"}, {Name: envoynames.DNSCluster}}} {
			node := xdsclient.Node(test.id, "shop", "envoy")
			node.Metadata.Fields["INSTANCE_IPS"] = structpb.NewStringValue(test.addresses)
			node.Extensions = extensions
			c := r.deltaWith(xdsclient.Config{Node: node})
			c.Subscribe(cds)
			c.Await("the cluster", func(s *xdsclient.State) bool { return s.Received(cds, clusterOf("names.example")) > 0 })
			c.Read(func(s *xdsclient.State) {
				held, _ := s.Get(cds, clusterOf("names.example"))
				m, _ := held.Content.(*clusterv3.Cluster)
				if family, typed := familyIn(t, m); family != test.family || typed != (extensions != nil) {
					t.Errorf("an Envoy %s at %q with %d extensions resolves by %s: %v", test.id, test.addresses, len(extensions), family, m)
				}
			})
		}
	}
}

// familyIn reads which addresses are asked for, and whether it stands where
// newer Envoys want it.
func familyIn(t *testing.T, c *clusterv3.Cluster) (family string, typed bool) {
	t.Helper()
	if c.GetClusterType() == nil {
		return c.GetDnsLookupFamily().String(), false
	}
	var names dnsv3.DnsCluster
	if err := c.GetClusterType().GetTypedConfig().UnmarshalTo(&names); err != nil {
		t.Fatal(err)
	}
	return names.GetDnsLookupFamily().String(), true
}
