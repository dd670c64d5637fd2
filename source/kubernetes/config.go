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
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/source"
)

var (
	_ source.Settings  = (*Config)(nil)
	_ source.APIServer = (*Config)(nil)
	_ source.Cluster   = (*Config)(nil)
)

// Config selects the cluster to read.
type Config struct {
	// Kubeconfig is a kubeconfig file. Empty means the cluster that Isthmus runs in,
	// or else kubectl's default: $KUBECONFIG, then ~/.kube/config.
	Kubeconfig string `json:"kubeconfig"`
	// Context is a context of the kubeconfig; empty means its current one.
	Context string `json:"context"`
	// Cluster is the cluster name set on each endpoint; empty for none.
	Cluster string `json:"cluster"`
	// Network is the network of pods that do not name another; empty for none.
	Network string `json:"network"`
	// Domain is the domain of the cluster's DNS.
	Domain string `json:"domain"`
	// Namespaces are the namespaces to read, each by itself; none means all.
	Namespaces []string `json:"namespaces"`
	// ClusterLocal are Services with another meaning in each cluster, as
	// namespace/name or namespace/*. They are not read. The API server's Service is
	// read by default, and each client gets its own cluster's.
	ClusterLocal []string `json:"clusterLocal"`
	// Istio enables reading Istio's objects.
	Istio bool `json:"istio"`
	// SMI enables reading the TrafficSplits of a cluster that has their definition.
	SMI bool `json:"smi"`
	// Carry names the kinds of Istio that are passed on to control planes unchanged; none by
	// default.
	Carry istio.Carry `json:"carry"`
	// Pods enables reading pods, for labels and service accounts of endpoints.
	Pods bool `json:"pods"`
	// Events enables Kubernetes Events about rejected objects. The default is true for the
	// cluster that Isthmus runs in, and false for one of a kubeconfig: a cluster that is only
	// read is written to if the configuration says so.
	Events *bool `json:"events"`
}

// writesEvents reports whether rejected objects have Events.
func (c *Config) writesEvents() bool {
	if c.Events != nil {
		return *c.Events
	}
	return c.Kubeconfig == "" && c.Context == ""
}

// Kind returns the row of this registry in the table of kinds.
func Kind() source.Kind {
	return source.Kind{
		Name: "kubernetes", MaxBackoff: 10 * time.Second,
		New: func() source.Settings {
			return &Config{Domain: "cluster.local", ClusterLocal: []string{"kube-system/*"}, Istio: true, SMI: true, Pods: true}
		},
	}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	var errs []error
	if !names.IsObjectName(c.Domain) {
		errs = append(errs, fmt.Errorf("domain: %q is not a DNS name in lower case; cluster.local is the default", c.Domain))
	}
	for field, value := range map[string]string{"cluster": c.Cluster, "network": c.Network} {
		if !names.IsLabelValue(value) || strings.TrimSpace(value) != value {
			errs = append(errs, fmt.Errorf("%s: %q cannot be the value of a label: use at most 63 letters, digits, '-', '_' and '.'", field, value))
		}
	}
	for i, namespace := range c.Namespaces {
		switch {
		case !names.IsNamespace(namespace):
			errs = append(errs, fmt.Errorf("namespaces[%d]: %q is not a namespace, such as shop; leave namespaces out to read all of them", i, namespace))
		case slices.Contains(c.Namespaces[:i], namespace):
			errs = append(errs, fmt.Errorf("namespaces[%d]: %q is a duplicate; remove it", i, namespace))
		}
	}
	for i, pattern := range c.ClusterLocal {
		namespace, name, both := strings.Cut(pattern, "/")
		if !both || !names.IsNamespace(namespace) || name != "*" && !names.IsObjectName(name) {
			errs = append(errs, fmt.Errorf("clusterLocal[%d]: %q names no Services: write namespace/name, or namespace/* for all of a namespace", i, pattern))
		}
	}
	return errors.Join(append(errs, c.Carry.Validate())...)
}

// clusterLocal are patterns of excluded Services, as in [Config].
type clusterLocal []string

// has reports whether a Service is excluded.
func (c clusterLocal) has(name kubernetes.Name) bool {
	return slices.Contains(c, name.Namespace+"/*") || slices.Contains(c, name.Namespace+"/"+name.Name)
}

// Resolve implements [source.Settings].
func (c *Config) Resolve(dir string) {
	if c.Kubeconfig != "" && !filepath.IsAbs(c.Kubeconfig) {
		c.Kubeconfig = filepath.Join(dir, c.Kubeconfig)
	}
}

// Check implements [source.Settings]. It opens no connection. The default API server
// is only known once it is used.
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

// Sees implements [source.APIServer].
func (c *Config) Sees(ctx context.Context, m source.Marker) (bool, error) {
	target, err := c.target()
	if err != nil {
		return false, err
	}
	uid, err := kubeconfig.Lease{Namespace: m.Namespace, Name: m.Name}.UID(ctx, target, false)
	return err == nil && uid == m.UID, err
}

// ClusterDomain implements [source.Cluster].
func (c *Config) ClusterDomain() string { return c.Domain }

// Secrets returns the files with secrets.
func (c *Config) Secrets() []string { return []string{c.Kubeconfig} }

// Warnings implements [source.Settings].
func (c *Config) Warnings() []string { return nil }

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source { return New(*c, env) }

func (c *Config) cluster() kubernetes.Cluster {
	return kubernetes.Cluster{Domain: c.Domain, Network: c.Network, Name: c.Cluster}
}

// definitions returns the kinds of Istio's and SMI's objects to read or carry.
func (c *Config) definitions() []istio.Definition {
	read := slices.DeleteFunc(istio.Understood(), func(of istio.Definition) bool {
		return of.IsSMI() && !c.SMI || !of.IsSMI() && !c.Istio
	})
	return append(read, c.Carry.Definitions()...)
}

// namespaces returns the namespaces to list separately: some, or "" for all at once.
func (c *Config) namespaces() []string {
	if len(c.Namespaces) == 0 {
		return []string{""}
	}
	return c.Namespaces
}
