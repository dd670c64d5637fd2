package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/source"
)

var (
	_ source.Settings  = (*Config)(nil)
	_ source.APIServer = (*Config)(nil)
	_ source.Cluster   = (*Config)(nil)
)

// Config says which cluster to read.
type Config struct {
	// Kubeconfig is a file as of kubectl. Empty means the cluster that Isthmus runs
	// in, or else what kubectl would take: $KUBECONFIG, then ~/.kube/config.
	Kubeconfig string `json:"kubeconfig"`
	// Context is one of the kubeconfig; empty means its current one.
	Context string `json:"context"`
	// Cluster is the name that stands on each endpoint; empty for none.
	Cluster string `json:"cluster"`
	// Network is the one that pods are in that do not name another; empty for none.
	Network string `json:"network"`
	// Domain is that of the cluster's DNS.
	Domain string `json:"domain"`
	// Namespaces are those whose objects are read, each by itself; none means all.
	Namespaces []string `json:"namespaces"`
	// ClusterLocal are Services that mean something else in each cluster, as
	// namespace/name or namespace/*. They are not read. That of the API server is read by
	// default, and each client is given its own cluster's.
	ClusterLocal []string `json:"clusterLocal"`
	// Istio has Istio's objects read as well.
	Istio bool `json:"istio"`
	// Pods has pods read, for labels and service accounts of endpoints.
	Pods bool `json:"pods"`
}

// Kind is the row by which this registry is known.
func Kind() source.Kind {
	return source.Kind{
		Name: "kubernetes", MaxBackoff: 10 * time.Second,
		New: func() source.Settings {
			return &Config{Domain: "cluster.local", ClusterLocal: []string{"kube-system/*"}, Istio: true, Pods: true}
		},
	}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	var errs []error
	if !istio.IsObjectName(c.Domain) {
		errs = append(errs, fmt.Errorf("domain: %q is no DNS name in lower case; cluster.local is the default", c.Domain))
	}
	for field, value := range map[string]string{"cluster": c.Cluster, "network": c.Network} {
		if !istio.IsLabelValue(value) || strings.TrimSpace(value) != value {
			errs = append(errs, fmt.Errorf("%s: %q cannot be the value of a label: use at most 63 letters, digits, '-', '_' and '.'", field, value))
		}
	}
	for i, namespace := range c.Namespaces {
		switch {
		case !istio.IsNamespace(namespace):
			errs = append(errs, fmt.Errorf("namespaces[%d]: %q is no name of a namespace; write one such as shop, or leave all out to read every namespace", i, namespace))
		case slices.Contains(c.Namespaces[:i], namespace):
			errs = append(errs, fmt.Errorf("namespaces[%d]: %q is there already; remove it", i, namespace))
		}
	}
	for i, pattern := range c.ClusterLocal {
		namespace, name, both := strings.Cut(pattern, "/")
		if !both || !istio.IsNamespace(namespace) || name != "*" && !istio.IsObjectName(name) {
			errs = append(errs, fmt.Errorf("clusterLocal[%d]: %q names no Services: write namespace/name, or namespace/* for all of a namespace", i, pattern))
		}
	}
	return errors.Join(errs...)
}

// isClusterLocal reports whether a Service is not to be read.
func (c *Config) isClusterLocal(name kubernetes.Name) bool {
	return slices.Contains(c.ClusterLocal, name.Namespace+"/*") || slices.Contains(c.ClusterLocal, name.Namespace+"/"+name.Name)
}

// Resolve implements [source.Settings].
func (c *Config) Resolve(dir string) {
	if c.Kubeconfig != "" && !filepath.IsAbs(c.Kubeconfig) {
		c.Kubeconfig = filepath.Join(dir, c.Kubeconfig)
	}
}

// Check implements [source.Settings]. It speaks to nobody. Which API server it is if none
// is named is not known before it is used.
func (c *Config) Check() error {
	if c.Kubeconfig == "" && c.Context == "" {
		return nil
	}
	_, err := c.target()
	return err
}

func (c *Config) target() (*rest.Config, error) {
	return kubeconfig.Load(c.Kubeconfig, c.Context, "isthmus")
}

// Server implements [source.APIServer].
func (c *Config) Server() (string, error) {
	target, err := c.target()
	if err != nil {
		return "", err
	}
	return kubeconfig.Server(target)
}

// Identity implements [source.APIServer].
func (c *Config) Identity(ctx context.Context) (string, error) {
	target, err := c.target()
	if err != nil {
		return "", err
	}
	return kubeconfig.Identity(ctx, target)
}

// ClusterDomain implements [source.Cluster].
func (c *Config) ClusterDomain() string { return c.Domain }

// Warnings implements [source.Settings].
func (c *Config) Warnings() []string { return nil }

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source { return New(*c, env) }

func (c *Config) cluster() kubernetes.Cluster {
	return kubernetes.Cluster{Domain: c.Domain, Network: c.Network, Name: c.Cluster}
}

// namespaces are the parts in which objects are asked for: some namespaces, or all as one.
func (c *Config) namespaces() []string {
	if len(c.Namespaces) == 0 {
		return []string{""}
	}
	return c.Namespaces
}
