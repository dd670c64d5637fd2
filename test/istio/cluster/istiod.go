package cluster

import (
	"context"
	"fmt"
	"net/http"
)

// RootNamespace is where istiod lives, and those beside it.
const RootNamespace = "istio-system"

// Istiod is Istio's control plane. It reads the objects of all namespaces.
type Istiod struct {
	*Process
	XDS        string // address, in plain text
	Monitoring string // address of its metrics and profiles
}

// StartIstiod starts an istiod, which ends with the cluster.
func (c *Cluster) StartIstiod(ctx context.Context) (*Istiod, error) {
	addresses, err := freeAddresses(ctx, 3)
	if err != nil {
		return nil, err
	}
	kubeconfig := c.API.file("kubeconfig-istiod")
	if err := c.API.WriteKubeconfig(kubeconfig, istiod, Masters); err != nil {
		return nil, err
	}
	xds, web, monitoring := addresses[0], addresses[1], addresses[2]
	i := &Istiod{XDS: xds, Monitoring: monitoring}
	i.Process = NewProcess(c.dir, fmt.Sprintf("%s-%d", istiod, len(c.istiods)), c.programs.paths[istiod],
		"discovery", "--registries=", "--kubeconfig="+kubeconfig,
		"--grpcAddr="+xds, "--secureGRPCAddr=", "--httpAddr="+web, "--httpsAddr=",
		"--monitoringAddr="+monitoring, "--ctrlz_port=0")
	i.env = []string{
		"POD_NAME=istiod-0", "POD_NAMESPACE=" + RootNamespace,
		"ENABLE_CA_SERVER=false", "INJECT_ENABLED=false",
	}
	c.istiods = append(c.istiods, i)
	err = i.Start(ctx, func(ctx context.Context) error {
		return get(ctx, http.DefaultClient, "http://"+web+"/ready")
	})
	return i, err
}
