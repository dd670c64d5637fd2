package envoy

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An Envoy with addresses of both families listens on all addresses of both, and at the
// addresses of services of both. It calls its workload from an address of the same family.
func TestEnvoysOfBothFamiliesTakeBoth(t *testing.T) {
	t.Parallel()
	snapshot := snapshotOfServices(
		serviceSpec{host: "web", number: 80, protocol: "HTTP"},
		serviceSpec{host: "raw", number: 90, protocol: "TCP", addresses: []string{"10.1.0.1", "2001:db8::1"}},
		// Unspecified addresses are none: a listener at one would bind what the shared one binds.
		serviceSpec{host: "any", number: 90, protocol: "TCP", addresses: []string{"::", "0.0.0.0/32"}},
		serviceSpec{host: "safe", number: 443, protocol: "TLS", addresses: []string{"::"}},
	)
	s := NewTranslator()
	s.Edge.Ports = []policy.EdgePort{{Number: 8080, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}}, {Number: 9000, Protocol: policy.EdgeTCP, Hosts: []string{"raw"}}}
	w := s.Begin(nil)(snapshot, catalog.Change{}, true, "root").World.(*World)
	tests := map[string]struct {
		addresses []string
		role      string
		mode      string
		want      []string // listeners, each with its further addresses
		sources   []string
	}{
		"both": {
			[]string{"10.0.0.1", "fd00::1"},
			"sidecar", "REDIRECT",
			[]string{"0.0.0.0_443 ::_443", "0.0.0.0_80 ::_80", "10.1.0.1_90", "2001:db8::1_90", "virtualInbound ::_15006", "virtualOutbound ::_15001"},
			[]string{"127.0.0.6", "::6"},
		},
		"both, in another order": {
			[]string{"fd00::1", "10.0.0.1"},
			"sidecar", "TPROXY",
			[]string{"0.0.0.0_443 ::_443", "0.0.0.0_80 ::_80", "10.1.0.1_90", "2001:db8::1_90", "virtualInbound ::_15006", "virtualOutbound ::_15001"},
			[]string{"127.0.0.6", "::6"},
		},
		"IPv4": {
			[]string{"10.0.0.1"},
			"sidecar", "REDIRECT",
			[]string{"0.0.0.0_443", "0.0.0.0_80", "10.1.0.1_90", "virtualInbound", "virtualOutbound"},
			[]string{"127.0.0.6"},
		},
		"IPv6": {
			[]string{"fd00::1"},
			"sidecar", "REDIRECT",
			[]string{"2001:db8::1_90", "::_443", "::_80", "virtualInbound", "virtualOutbound"},
			[]string{"::6"},
		},
		"both on loopback": {[]string{"10.0.0.1", "fd00::1"}, "sidecar", "NONE", []string{"127.0.0.1_443", "127.0.0.1_80", "127.0.0.1_90"}, nil},
		"both at the edge": {[]string{"10.0.0.1", "fd00::1"}, "router", "", []string{"0.0.0.0_8080 ::_8080", "0.0.0.0_9000 ::_9000"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := world.Client{Kind: reach.KindEnvoy, Namespace: "a", Addresses: test.addresses, Proxy: world.Proxy{Role: test.role, Interception: test.mode, Outbound: world.AllPorts()}}
			var got []string
			for name := range w.Names(w.View(ListenerType, c), ListenerType) {
				l := &listenerv3.Listener{}
				if !readInto(t, w, ListenerType, c, name, l) {
					t.Fatalf("there is no %s", name)
				}
				for _, also := range l.GetAdditionalAddresses() {
					at := also.GetAddress().GetSocketAddress()
					name += " " + names.Socket(at.GetAddress(), at.GetPortValue())
				}
				got = append(got, name)
			}
			slices.Sort(got)
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("its listeners are (- want, + got):\n%s", diff)
			}
			var sources []string
			if to := (&clusterv3.Cluster{}); test.sources != nil && readInto(t, w, ClusterType, c, names.InboundPassthrough, to) {
				bind := to.GetUpstreamBindConfig()
				sources = append(sources, bind.GetSourceAddress().GetAddress())
				for _, extra := range bind.GetExtraSourceAddresses() {
					sources = append(sources, extra.GetAddress().GetAddress())
				}
			}
			if diff := gocmp.Diff(test.sources, sources); diff != "" {
				t.Errorf("it calls its workload from (- want, + got):\n%s", diff)
			}
		})
	}
}
