package istio

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/push"
)

// Config says where to write, and how.
type Config struct {
	// Kubeconfig is a file as of kubectl. Empty means the cluster that Isthmus runs
	// in, or else what kubectl would take: $KUBECONFIG, then ~/.kube/config.
	Kubeconfig string `json:"kubeconfig"`
	// Context is one of the kubeconfig; empty means its current one.
	Context string `json:"context"`
	// Sources are the names of those that are written. None means all but those
	// that read the same API server.
	Sources []string `json:"sources"`
	// Debounce makes one write of a burst of changes of a service.
	Debounce       push.Debounce  `json:"debounce"`
	LeaderElection LeaderElection `json:"leaderElection"`
	// QPS bounds the writes per second, and Burst how many may come at once.
	QPS   float64 `json:"qps"`
	Burst int     `json:"burst"`
	// ShardSize is the number of endpoints above which a service is written as
	// several objects.
	ShardSize int `json:"shardSize"`
	// Sidecars has the scopes of the sources written as well.
	Sidecars bool `json:"sidecars"`
}

// LeaderElection has one of several replicas write.
type LeaderElection struct {
	Enabled bool `json:"enabled"`
	// Namespace and Name are those of the Lease.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// DefaultConfig is the configuration of which nothing is set.
func DefaultConfig() Config {
	return Config{
		Debounce:       push.Debounce{Quiet: time.Second, Max: 10 * time.Second, Events: 1000},
		LeaderElection: LeaderElection{Enabled: true, Namespace: "istio-system", Name: "isthmus"},
		QPS:            50,
		Burst:          100,
		ShardSize:      100,
	}
}

// SetDefaults gives the configuration what it has if nothing is said.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Resolve makes a relative path relative to a folder.
func (c *Config) Resolve(dir string) {
	if c.Kubeconfig != "" && !filepath.IsAbs(c.Kubeconfig) {
		c.Kubeconfig = filepath.Join(dir, c.Kubeconfig)
	}
}

// Check reports what is wrong with the kubeconfig, with the field. It speaks to
// nobody.
func (c Config) Check() error {
	if c.Kubeconfig == "" && c.Context == "" {
		return nil // which one it is is not known before it is used
	}
	_, err := c.target()
	return err
}

// IsInstance reports whether the name of an Isthmus can be the value of the
// label that marks what it owns.
func IsInstance(name string) bool { return name != "" && convert.IsLabelValue(name) }

// mostEndpoints is how many a shard may be set to hold. Istio's schema allows
// 4096 in an object; endpoints are spread by hash, so some shards hold more than others.
const mostEndpoints = 3000

// Validate reports what is wrong with the configuration, with the field.
func (c Config) Validate() error {
	switch {
	case c.Debounce.Quiet < 0:
		return errors.New("debounce.quiet: must not be below zero; 1s is the default")
	case c.Debounce.Max < 0:
		return errors.New("debounce.max: must not be below zero; 10s is the default")
	case c.Debounce.Events < 0:
		return errors.New("debounce.events: must not be below zero; 1000 is the default")
	case c.QPS <= 0:
		return errors.New("qps: must be above zero; 50 is the default")
	case c.Burst < 1:
		return errors.New("burst: must be 1 or more; 100 is the default")
	case c.ShardSize < 1 || c.ShardSize > mostEndpoints:
		return fmt.Errorf("shardSize: must be 1 to %d, which Istio's and etcd's limits allow; 100 is the default", mostEndpoints)
	}
	return c.LeaderElection.validate()
}

func (l LeaderElection) validate() error {
	switch {
	case !l.Enabled:
		return nil
	case !convert.IsNamespace(l.Namespace):
		return fmt.Errorf("leaderElection.namespace: %q is not a namespace; istio-system is the default", l.Namespace)
	case !convert.IsObjectName(l.Name):
		return fmt.Errorf("leaderElection.name: %q is not the name of an object; isthmus is the default", l.Name)
	}
	return nil
}
