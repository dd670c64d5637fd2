package istio_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TestNewcomerCallsThroughIstio does what docs/getting-started.md says of Istio. The
// pod with a sidecar is an Envoy that istiod configures. Its listeners are bound on
// loopback, and curl connects there instead of being redirected.
func TestNewcomerCallsThroughIstio(t *testing.T) {
	t.Parallel()
	const here, pod = "127.0.0.2", "127.0.0.1"
	c := startCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	i, err := c.StartIstiod(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartEnvoy(ctx, i, cluster.Sidecar{Workload: "web", Namespace: "shop", Delta: true}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := c.API.WriteKubeconfig(kubeconfig, cluster.Admin); err != nil {
		t.Fatal(err)
	}
	n := guide.Begin(t, filepath.Join(programs.Repository, "docs", "getting-started.md"),
		map[string]string{"isthmus": program, "kubectl": programs.Kubectl()}, func() string { return freePort(t) }, "192.0.2.10", here)
	n.Env = append(n.Env, "KUBECONFIG="+kubeconfig)
	n.Write(".curlrc", fmt.Sprintf("connect-to = \"%s::%s:\"\n", here, pod))
	n.Follow("Istio")
}
