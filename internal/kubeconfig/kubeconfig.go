// Package kubeconfig finds the API server that a configuration names, as kubectl does.
// It speaks to nobody.
package kubeconfig

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config names an API server.
type Config struct {
	// Kubeconfig is a file as of kubectl. Empty means the cluster that Isthmus runs
	// in, or else what kubectl would take: $KUBECONFIG, then ~/.kube/config.
	Kubeconfig string `json:"kubeconfig"`
	// Context is one of the kubeconfig; empty means its current one.
	Context string `json:"context"`
}

// Resolve makes a relative path start from a folder.
func (c *Config) Resolve(dir string) {
	if c.Kubeconfig != "" && !filepath.IsAbs(c.Kubeconfig) {
		c.Kubeconfig = filepath.Join(dir, c.Kubeconfig)
	}
}

// Check reports what is wrong with the file. Which one it is if none is named is not
// known before it is used.
func (c *Config) Check() error {
	if c.Kubeconfig == "" && c.Context == "" {
		return nil
	}
	_, err := c.Load("isthmus")
	return err
}

// Load returns how to reach the API server, under the name of a program.
func (c *Config) Load(userAgent string) (*rest.Config, error) {
	if c.Kubeconfig == "" && c.Context == "" {
		if inside, err := rest.InClusterConfig(); err == nil {
			inside.UserAgent = userAgent
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
	target.UserAgent = userAgent
	return target, nil
}
