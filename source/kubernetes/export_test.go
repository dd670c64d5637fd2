package kubernetes

import (
	"time"

	"k8s.io/client-go/rest"
)

// Reach has the source reach a cluster otherwise than by its kubeconfig.
func (s *Source) Reach(target *rest.Config) {
	s.target = func() (*rest.Config, error) { return target, nil }
}

// PluginWithin says how long a credential plugin may take.
func (s *Source) PluginWithin(d time.Duration) { s.plugin.Within = d }
