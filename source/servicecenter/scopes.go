package servicecenter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// scoping makes scopes of consumers; nil makes none.
type scoping struct {
	selector   map[string]*template.Template
	namespace  *template.Template
	hosts      []string
	perVersion bool // a template uses the version
}

// identify returns a consumer as scopes distinguish it: each version by itself if a
// template uses the version, whether or not versions are services of their own.
func (s *scoping) identify(i Identity, version string) Identity {
	if s != nil && s.perVersion {
		i.Version = version
	}
	return i
}

func newScoping(s *Scopes) (*scoping, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // nothing is wrong with none
	}
	out := &scoping{
		selector: map[string]*template.Template{}, hosts: slices.Clone(s.Hosts), perVersion: strings.Contains(s.Namespace, ".Version"),
	}
	var err error
	if s.Namespace == "" {
		return nil, errors.New("scopes.namespace: missing; name where the consumers' workloads live, such as shop or {{.App}}")
	}
	if out.namespace, err = parseTemplate("scopes.namespace", s.Namespace); err != nil {
		return nil, err
	}
	if len(s.WorkloadSelector) == 0 {
		return nil, errors.New(`scopes.workloadSelector: missing; say by which labels a consumer's workloads are found, such as {app: "{{.Service}}"}`)
	}
	for _, key := range slices.Sorted(maps.Keys(s.WorkloadSelector)) {
		field := "scopes.workloadSelector." + key
		if !isLabelKey(key) {
			return nil, fmt.Errorf("%s: is not the key of a label; write such as app", field)
		}
		if out.selector[key], err = parseTemplate(field, s.WorkloadSelector[key]); err != nil {
			return nil, err
		}
		out.perVersion = out.perVersion || strings.Contains(s.WorkloadSelector[key], ".Version")
	}
	for i, host := range s.Hosts {
		if err := checkScopeHost(host); err != nil {
			return nil, fmt.Errorf("scopes.hosts[%d]: %q %w", i, host, err)
		}
	}
	return out, nil
}

// checkScopeHost returns the fault of a "namespace/host", by the rules of a Sidecar's
// egress.
func checkScopeHost(text string) error {
	namespace, host, ok := strings.Cut(text, "/")
	switch {
	case !ok || namespace == "" || host == "":
		return errors.New("is not of the form namespace/host; write such as istio-system/*")
	case namespace != "*" && namespace != "." && namespace != "~" && len(content.IsDNS1123Label(namespace)) > 0:
		return errors.New("does not begin with a namespace; write one, \".\" for the workload's own, or \"*\" for all")
	case host == "*":
		return nil
	}
	bare := strings.TrimPrefix(host, "*.")
	if !strings.Contains(host, ".") || strings.Contains(bare, "*") || sanitizeHost(bare) != bare {
		return errors.New("has no host that a Sidecar can name; write a full name such as cart.mesh, or *.mesh for all below it, or * for all")
	}
	return nil
}

func (c *Config) validateScopes() error {
	if c.Scopes == nil {
		return nil
	}
	if c.Dependencies.Poll == 0 {
		return errors.New("scopes: need the graph; add dependencies: {poll: 1m}")
	}
	if _, err := newScoping(c.Scopes); err != nil {
		return err
	}
	host, err := parseTemplate("host", c.Host)
	if err != nil {
		return err
	}
	plain, err := render(host, Identity{"p", "e", "a", "s", "1"})
	if err != nil || !strings.Contains(strings.Trim(plain, "."), ".") {
		return fmt.Errorf("host: %q gives names without a dot, which no Sidecar can name, so scopes cannot list them; "+
			"write a domain, such as %q; or leave scopes out, and limit who sees a service by exportTo", c.Host, c.Host+".mesh")
	}
	return nil
}
