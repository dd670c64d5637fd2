package smi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// host returns the host of the Service that a field names: by its short name, by the host of a
// Service of a cluster, or by any other host of the namespace. It is empty after a problem, and if the field is missing.
func (r *reader) host(n *yamlpos.Node, at ...any) string {
	name := n.Text()
	switch {
	case n.Kind() == yamlpos.Null:
		return ""
	case n.Kind() == yamlpos.String && name == "":
		r.add(at, "missing: %s", remedies["service"])
		return ""
	case n.Kind() != yamlpos.String:
		r.add(at, "must be a string, is %s: quote it", n.Kind())
		return ""
	case len(content.IsDNS1123Subdomain(name)) > 0:
		r.add(at, "%q cannot be a service: write the name of a Service, such as reviews, or a host in lower case, such as reviews.example.com", name)
		return ""
	}
	namespace, whole := r.serviceOf(name)
	if namespace != r.of.Namespace {
		r.add(at, "%q is in namespace %q, and a TrafficSplit is for hosts of its own namespace, which is %q: move the object, or name a service of %q",
			name, namespace, r.of.Namespace, r.of.Namespace)
		return ""
	}
	return whole
}

// serviceOf returns the namespace of a service, and its whole host. A host that is no Service
// of a cluster is one of the object's namespace.
func (r *reader) serviceOf(name string) (namespace, host string) {
	labels := strings.Split(name, ".")
	if len(labels) == 1 {
		return r.of.Namespace, strings.Join([]string{name, r.of.Namespace, "svc", r.of.Domain}, ".")
	}
	at := slices.Index(labels[2:], "svc") + 2 // a Service itself may have this name
	switch {
	case at < 2:
		return r.of.Namespace, name
	case at == len(labels)-1:
		return labels[at-1], name + "." + r.of.Domain
	default:
		return labels[at-1], name
	}
}
