package cluster

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// Sidecar is what Envoys behind an istiod differ in.
type Sidecar struct {
	Workload  string // its name
	Namespace string
	Labels    map[string]string
	Delta     bool     // else state of the world
	Flags     []string // more of them for the command that prints the bootstrap

	Metadata     map[string]string // more of its node's
	Redirected   bool              // connections are redirected to it
	ClustersOnly bool              // it has a listener of its bootstrap alone
}

// StartEnvoy starts a released Envoy that takes clusters, endpoints, listeners
// and routes from an istiod, and waits until it has them. It ends with the
// cluster.
func (c *Cluster) StartEnvoy(ctx context.Context, from *Istiod, s Sidecar) (*proxy.Proxy, error) {
	return c.StartEnvoyOf(ctx, from.XDS, s)
}

// StartEnvoyOf is StartEnvoy with the address of any control plane, for which the
// bootstrap is the same.
func (c *Cluster) StartEnvoyOf(ctx context.Context, from string, s Sidecar) (*proxy.Proxy, error) {
	address, err := netip.ParseAddrPort(from)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.dir, "envoy")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p, err := proxy.Start(ctx, proxy.Config{
		Program: c.programs.envoy, Isthmus: c.programs.Isthmus, Dir: dir, Workload: s.Workload, Namespace: s.Namespace, Labels: s.Labels,
		Delta: s.Delta, Flags: s.Flags, Istiod: true, Redirected: s.Redirected, Metadata: s.Metadata, ClustersOnly: s.ClustersOnly, ControlPlanes: []netip.AddrPort{address},
	})
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.proxies = append(c.proxies, p)
	}
	return p, err
}
