package records

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

// Settings select the services to mirror, and decide about their records.
type Settings struct {
	Project string
	// Environments and Apps select the services to mirror, all if empty. If several
	// services want one name, the order of these lists decides.
	Environments, Apps []string
	// Host, Namespace and ExportTo are templates of [Identity].
	Host, Namespace string
	ExportTo        []string
	// PortGrace is how long a service keeps a port that no instance has any more.
	PortGrace time.Duration
	// ServeTesting makes instances in status TESTING serve.
	ServeTesting bool
}

// Rules are parsed settings.
type Rules struct {
	project         string
	order           order
	host, namespace *template.Template
	perVersion      bool // versions are services of their own
	exports         exporting
	portGrace       time.Duration
	serveTesting    bool
}

// NewRules parses the templates, and tries each of them on a sample.
func NewRules(s Settings) (Rules, error) {
	r := Rules{
		project: s.Project, order: newOrder(s.Environments, s.Apps),
		perVersion: strings.Contains(s.Host+s.Namespace, ".Version"), portGrace: s.PortGrace, serveTesting: s.ServeTesting,
	}
	var hostErr, namespaceErr, exportErr error
	r.host, hostErr = parseTemplate("host", s.Host)
	r.namespace, namespaceErr = parseTemplate("namespace", s.Namespace)
	r.exports, exportErr = newExporting(s.ExportTo, r.namespace, r.perVersion)
	return r, errors.Join(hostErr, namespaceErr, exportErr)
}

// Wants reports whether a key is selected for mirroring.
func (r Rules) Wants(k registry.Key) bool { return r.order.wants(k) }

// Identify returns the service of the mesh that a version of a key is part of.
func (r Rules) Identify(k registry.Key, version string) Identity {
	i := Identity{Project: r.project, Environment: k.Environment, App: k.App, Service: k.Service}
	if r.perVersion {
		i.Version = version
	}
	return i
}

// Owns reports whether a stored service may be one that these rules mirror.
func (r Rules) Owns(i Identity) bool {
	return i.Project == r.project && (i.Version != "") == r.perVersion && r.Wants(i.Key())
}

// Of returns the instances of a service among the instances of its key.
func (r Rules) Of(i Identity, instances []registry.Instance) []registry.Instance {
	if !r.perVersion {
		return instances
	}
	return slices.DeleteFunc(slices.Clone(instances), func(o registry.Instance) bool { return o.Version != i.Version })
}

// sample returns an identity for trying templates.
func sample() Identity { return Identity{"default", "production", "shop", "cart", "1.0.0"} }

// parseTemplate parses the template of a field, and tries it.
func parseTemplate(field, text string) (*template.Template, error) {
	t, err := template.New(field).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a template, such as {{.Service}}: %w", field, text, err)
	}
	if out, err := render(t, sample()); err != nil {
		return nil, fmt.Errorf("%s: %q cannot be rendered: %w; the fields are .Service, .App, .Environment, .Version, .Project", field, text, err)
	} else if strings.TrimSpace(out) == "" {
		return nil, fmt.Errorf("%s: %q renders an empty text; write, for example, {{.Service}}", field, text)
	}
	return t, nil
}

func render(t *template.Template, i Identity) (string, error) {
	var b strings.Builder
	if err := t.Execute(&b, i); err != nil {
		if exec, ok := errors.AsType[template.ExecError](err); ok {
			text := exec.Err.Error() // begins with the position in the template, though it is one line
			text = text[strings.LastIndex(text, ": ")+1:]
			err = errors.New(strings.TrimSpace(strings.TrimSuffix(text, " in type records.Identity")))
		}
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// Unique returns an error for each repetition in the list of a field.
func Unique(field string, list []string) error {
	var errs []error
	for i, item := range list {
		if slices.Index(list, item) < i {
			errs = append(errs, fmt.Errorf("%s[%d]: %q is a duplicate; remove it", field, i, item))
		}
	}
	return errors.Join(errs...)
}
