package envoy

import (
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Only Envoys that may have routes of their own have the cluster of a subset. A gateway of the
// mesh has also the cluster that connections of other networks name.
func TestClustersOfSubsets(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, []model.Event{
		record("a", "p", model.Service{Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 80})}),
		place1("a", "p", "10.0.0.1"),
	})
	s := NewTranslator()
	s.Edge.Ports = []policy.EdgePort{{Number: 15443, Protocol: policy.EdgeAutoPassthrough, Hosts: []string{"*"}}}
	s.Hosts = []policy.HostPolicy{{
		Host: "h", Subsets: []policy.Subset{{Name: "v1", Labels: map[string]string{"version": "v1"}}},
		Policy: policy.Policy{TLS: &policy.UpstreamTLS{Mode: policy.IstioMutualTLS, CAFile: "/ca.crt", CertificateFile: "/tls.crt", KeyFile: "/tls.key"}},
	}}
	w := worldUnder(s.Prepare(), builder.Snapshot(), true, "istio-system", nil)
	for name, test := range map[string]struct {
		client world.Client
		routed bool // outbound|80|v1|h
		mesh   bool // outbound_.80_.v1_.h
	}{
		"own listeners": {world.Client{Kind: reach.KindEnvoy}, true, false},
		"edge":          {world.Client{Kind: reach.KindEnvoy, Proxy: world.Proxy{Role: "router"}}, true, true},
		"sidecar":       {world.Client{Kind: reach.KindEnvoy, Proxy: world.Proxy{Role: "sidecar"}}, false, false},
		"gRPC":          {world.Client{Kind: reach.KindGRPC}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.client.Namespace = "a"
			v := w.View(ClusterType, test.client)
			listed := slices.Collect(w.Names(v, ClusterType))
			for cluster, want := range map[string]bool{"outbound|80||h": true, "outbound|80|v1|h": test.routed, "outbound_.80_.v1_.h": test.mesh} {
				if _, found := w.Find(v, ClusterType, cluster); found != want || slices.Contains(listed, cluster) != want {
					t.Errorf("%s: found %t, listed %t, want %t", cluster, found, slices.Contains(listed, cluster), want)
				}
			}
		})
	}
}
