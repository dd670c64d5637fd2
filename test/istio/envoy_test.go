package istio_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// sidecars are two released Envoys, of which one takes deltas and the other the
// state of the world, behind an istiod that nobody else asks.
type sidecars struct {
	*api

	istiod  *cluster.Istiod
	proxies []*proxy.Proxy
}

// startSidecars starts them for workloads of a namespace.
func startSidecars(t *testing.T, c *cluster.Cluster, a *api, namespace string) *sidecars {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	i, err := c.StartIstiod(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return startSidecarsOf(t, c, a, i, namespace)
}

// startSidecarsOf is startSidecars with an istiod that runs already.
func startSidecarsOf(t *testing.T, c *cluster.Cluster, a *api, of *cluster.Istiod, namespace string) *sidecars {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	s := &sidecars{api: a, istiod: of}
	for name, delta := range map[string]bool{"delta": true, "sotw": false} {
		p, err := c.StartEnvoy(ctx, s.istiod, cluster.Sidecar{Workload: name, Namespace: namespace, Delta: delta})
		if err != nil {
			t.Fatal(err)
		}
		s.proxies = append(s.proxies, p)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections) // of those who read counters
	return s
}

// Await waits until every Envoy has exactly these endpoints, such as
// "10.0.0.1:80 3" with the weight, in a cluster; nil if there is no cluster.
func (s *sidecars) Await(name string, want []string) {
	s.t.Helper()
	for _, p := range s.proxies {
		await(s.t, name+" in Envoy", func() error {
			clusters, err := p.Clusters(s.t.Context())
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, endpointsOf(clusters, name)); diff != "" {
				return fmt.Errorf("%s: what was expected (-) is not what it has (+):\n%s", p.Name, diff)
			}
			return nil
		})
	}
}

func endpointsOf(clusters map[string]proxy.Cluster, name string) []string {
	c, there := clusters[name]
	if !there {
		return nil
	}
	list := []string{} // a cluster without endpoints is one, too
	for _, e := range c.Endpoints {
		list = append(list, fmt.Sprintf("%s:%d %d", e.Address, e.Port, e.Weight))
	}
	return list
}

// MustHaveRejectedNothing is that the Envoys took all that istiod sent.
func (s *sidecars) MustHaveRejectedNothing() {
	s.t.Helper()
	for _, p := range s.proxies {
		if err := p.Rejected(s.t.Context()); err != nil {
			s.t.Errorf("%s: %v", p.Name, err)
		}
	}
}

// connections are how often the Envoys have connected to istiod.
func (s *sidecars) connections() (n uint64) {
	s.t.Helper()
	for _, p := range s.proxies {
		stats, err := p.Stats(s.t.Context(), "^cluster.xds.upstream_cx_total$")
		if err != nil {
			s.t.Fatal(err)
		}
		n += stats["cluster.xds.upstream_cx_total"]
	}
	return n
}
