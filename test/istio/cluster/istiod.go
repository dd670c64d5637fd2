package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

// RootNamespace is where istiod lives, and those beside it.
const RootNamespace = "istio-system"

// Istiod is Istio's control plane. It reads the objects of all namespaces.
type Istiod struct {
	*Process
	XDS        string // address, in plain text
	Monitoring string // address of its metrics and profiles
}

// StartIstiod starts an istiod, which ends with the cluster. It sends no filters
// and no certificates that only Istio's own Envoy has.
func (c *Cluster) StartIstiod(ctx context.Context) (*Istiod, error) {
	return c.StartIstiodWith(ctx, "")
}

// StartIstiodWith is StartIstiod with more of its mesh configuration, in YAML, and
// of its environment.
func (c *Cluster) StartIstiodWith(ctx context.Context, mesh string, env ...string) (*Istiod, error) {
	addresses, err := freeAddresses(ctx, 3)
	if err != nil {
		return nil, err
	}
	kubeconfig := c.API.file("kubeconfig-istiod")
	if err := c.API.WriteKubeconfig(kubeconfig, istiod, Masters); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%d", istiod, len(c.istiods))
	config := c.API.file(name + ".yaml")
	if err := os.WriteFile(config, []byte("enableAutoMtls: false\n"+mesh), 0o600); err != nil {
		return nil, err
	}
	xds, web, monitoring := addresses[0], addresses[1], addresses[2]
	i := &Istiod{XDS: xds, Monitoring: monitoring}
	i.Process = NewProcess(c.dir, name, c.programs.paths[istiod],
		"discovery", "--registries=", "--kubeconfig="+kubeconfig, "--meshConfig="+config,
		"--grpcAddr="+xds, "--secureGRPCAddr=", "--httpAddr="+web, "--httpsAddr=",
		"--monitoringAddr="+monitoring, "--ctrlz_port=0")
	i.env = append([]string{
		"POD_NAME=istiod-0", "POD_NAMESPACE=" + RootNamespace,
		"ENABLE_CA_SERVER=false", "INJECT_ENABLED=false", "PILOT_ENABLE_METADATA_EXCHANGE=false", "PILOT_ENABLE_ALPN_FILTER=false",
	}, env...)
	c.istiods = append(c.istiods, i)
	err = i.Start(ctx, func(ctx context.Context) error {
		return get(ctx, http.DefaultClient, "http://"+web+"/ready")
	})
	return i, err
}
