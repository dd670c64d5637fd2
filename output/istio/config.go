package istio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/source"
)

// Config defines the destination and the manner of the writes.
type Config struct {
	// Kubeconfig is a file in kubectl's format. Empty means the cluster that Isthmus runs in,
	// or otherwise kubectl's default: $KUBECONFIG, then ~/.kube/config.
	Kubeconfig string `json:"kubeconfig"`
	// Context is a context of the kubeconfig; empty means its current one.
	Context string `json:"context"`
	// Sources are the names of the written sources. Empty means all but the sources that read
	// the same API server.
	Sources []string `json:"sources"`
	// Debounce joins a burst of changes of a service into one write.
	Debounce       world.Debounce `json:"debounce"`
	LeaderElection LeaderElection `json:"leaderElection"`
	// QPS bounds the writes per second, and Burst the number that may come at once.
	QPS   float64 `json:"qps"`
	Burst int     `json:"burst"`
	// ShardSize is the number of endpoints above which a service is written as
	// several objects.
	ShardSize int `json:"shardSize"`
	// Endpoints is the form of the endpoints of a service.
	Endpoints translate.Form `json:"endpoints"`
	// Sidecars enables writing the scopes of the sources.
	Sidecars bool `json:"sidecars"`
	// Shares is how the shares of splits are written.
	Shares translate.Shares `json:"shares"`

	above int // see [translate.Settings]
}

// LeaderElection lets only one of several replicas write.
type LeaderElection struct {
	Enabled bool `json:"enabled"`
	// Namespace and Name are the namespace and name of the Lease. Without an election, the
	// Lease still marks the written cluster.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Debounce:       world.Debounce{Quiet: time.Second, Max: 10 * time.Second, Events: 1000},
		LeaderElection: LeaderElection{Enabled: true, Namespace: "istio-system", Name: "isthmus"},
		QPS:            50,
		Burst:          100,
		ShardSize:      100,
		Endpoints:      translate.Inline,
		Shares:         translate.SharesAsWeights,
	}
}

// settings returns the part that decides the form of the objects.
func (c Config) settings(instance string) translate.Settings {
	return translate.Settings{Instance: instance, ShardSize: c.ShardSize, Endpoints: c.Endpoints, Sidecars: c.Sidecars, Shares: c.Shares, Above: c.above}
}

// Translate returns the objects of a service, marked with an instance. exists reports
// whether an object name is in use for the service now; see [Config.ShardSize].
func (c Config) Translate(instance string, s *catalog.Service, exists func(name string) bool) translate.Translation {
	settings := c.settings(instance)
	t := settings.Service(s, settings.IsWorkloads(s, false), translate.InUse{Exists: exists}, nil)
	for i := range t.Objects {
		t.Objects[i] = t.Objects[i].Whole()
	}
	return t
}

// Only implements [output.APIServer].
func (c *Config) Only() []string { return c.Sources }

// String implements [output.Settings].
func (c *Config) String() string {
	return "to the API server of " + cmp.Or(c.Kubeconfig, "this cluster")
}

// Secrets returns the files with secrets.
func (c *Config) Secrets() []string { return []string{c.Kubeconfig} }

// Warnings implements [output.Settings].
func (c *Config) Warnings() []string { return nil }

// Resolve implements [output.Settings].
func (c *Config) Resolve(dir string) {
	if c.Kubeconfig != "" && !filepath.IsAbs(c.Kubeconfig) {
		c.Kubeconfig = filepath.Join(dir, c.Kubeconfig)
	}
}

// Check implements [output.Settings]. It opens no connection.
func (c *Config) Check() error {
	if c.Kubeconfig == "" && c.Context == "" {
		return nil // the cluster is not known before it is used
	}
	_, err := c.target()
	return err
}

// target returns the client configuration for the API server that the configuration names.
func (c Config) target() (*rest.Config, error) {
	return kubeconfig.Load(c.Kubeconfig, c.Context, object.FieldManager)
}

// Server implements [output.APIServer].
func (c Config) Server() (string, error) {
	target, err := c.target()
	if err != nil {
		return "", err
	}
	return kubeconfig.Server(target)
}

// Sees implements [source.APIServer].
func (c Config) Sees(ctx context.Context, m source.Marker) (bool, error) {
	target, err := c.target()
	if err != nil {
		return false, err
	}
	uid, err := kubeconfig.Lease{Namespace: m.Namespace, Name: m.Name}.UID(ctx, target, false)
	return err == nil && uid == m.UID, err
}

// Mark implements [output.APIServer]. The marker is the Lease of the election, which takes
// it over.
func (c Config) Mark(ctx context.Context, create bool) (m source.Marker, err error) {
	lease := kubeconfig.Lease{Namespace: c.LeaderElection.Namespace, Name: c.LeaderElection.Name}
	target, err := c.target()
	if err != nil {
		return m, err
	}
	uid, err := lease.UID(ctx, target, create)
	return source.Marker{Namespace: lease.Namespace, Name: lease.Name, UID: uid}, err
}

// mostEndpoints is the largest allowed shard size. Istio's schema allows 4096 endpoints in
// an object. They are spread by hash, so some shards exceed the size.
const mostEndpoints = 3000

// Validate implements [output.Settings].
func (c *Config) Validate() error {
	return errors.Join(
		wrong(c.Debounce.Quiet < 0, "debounce.quiet: must not be below zero; 1s is the default"),
		wrong(c.Debounce.Max < 0, "debounce.max: must not be below zero; 10s is the default"),
		wrong(c.Debounce.Events < 0, "debounce.events: must not be below zero; 1000 is the default"),
		wrong(c.QPS <= 0, "qps: must be above zero; 50 is the default"),
		wrong(c.Burst < 1, "burst: must be 1 or more; 100 is the default"),
		wrong(c.ShardSize < 1 || c.ShardSize > mostEndpoints,
			"shardSize: must be from 1 to %d, because of limits of Istio and etcd; 100 is the default", mostEndpoints),
		c.Endpoints.Validate(),
		c.Shares.Validate(),
		c.LeaderElection.validate(),
	)
}

// wrong returns the error of a field if a condition holds.
func wrong(holds bool, format string, args ...any) error {
	if !holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func (l LeaderElection) validate() error {
	return errors.Join(
		wrong(!names.IsNamespace(l.Namespace),
			"leaderElection.namespace: %q is not a namespace; istio-system is the default", l.Namespace),
		wrong(!names.IsObjectName(l.Name), "leaderElection.name: %q is not the name of an object; isthmus is the default", l.Name),
	)
}
