package istio

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// target is the API server that the configuration names.
func (c Config) target() (*rest.Config, error) {
	if c.Kubeconfig == "" && c.Context == "" {
		if inside, err := rest.InClusterConfig(); err == nil {
			inside.UserAgent = fieldManager
			return inside, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	target, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	if err != nil {
		field := "kubeconfig"
		if c.Context != "" {
			field = "context"
		}
		return nil, fmt.Errorf("%s: %w; name a kubeconfig that can be used, or leave it out inside a cluster", field, err)
	}
	target.UserAgent = fieldManager
	return target, nil
}

// Server is the address of the API server that the configuration names.
func (c Config) Server() (string, error) {
	target, err := c.target()
	if err != nil {
		return "", err
	}
	return target.Host, nil
}
