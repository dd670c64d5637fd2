package istio

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
)

// target returns the client configuration for the API server that the configuration names.
func (c Config) target() (*rest.Config, error) {
	return kubeconfig.Load(c.Kubeconfig, c.Context, fieldManager)
}

// Server implements [output.APIServer].
func (c Config) Server() (string, error) {
	target, err := c.target()
	if err != nil {
		return "", err
	}
	return kubeconfig.Server(target)
}

// Identity implements [output.APIServer].
func (c Config) Identity(ctx context.Context) (string, error) {
	target, err := c.target()
	if err != nil {
		return "", err
	}
	return kubeconfig.Identity(ctx, target)
}
