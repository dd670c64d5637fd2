package machines

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/model"
)

// Definition is a service with the place that defines it.
type Definition struct {
	Service
	Name  string // of the record
	Place string // as in [model.Record]
	Where string // for people
}

// Configured returns the definitions of a configuration.
func Configured(services []Service) []Definition {
	list := make([]Definition, len(services))
	for i, s := range services {
		list[i] = Definition{Service: s, Name: s.Host, Place: "configuration", Where: "services: " + s.Host}
	}
	return list
}

// Ref names the record.
func (d Definition) Ref() model.Ref {
	return model.Ref{Kind: model.KindService, Key: model.Key{Namespace: d.Namespace, Name: d.Name}}
}

// object returns the record with an endpoint for each machine with an address. Left
// counts the tags that cannot be labels.
func (d Definition) object(machines []Machine, is *stored) (o model.Object, left int) {
	o.Record = model.Record{Ref: d.Ref(), Place: d.Place, Spec: d.spec()}
	ports := map[string]uint32{}
	for _, p := range d.Ports {
		ports[p.name()] = p.target()
	}
	served := model.MapOf(ports)
	for _, m := range machines {
		if !m.Address.IsValid() {
			continue
		}
		labels, not := d.labels(m)
		left += not
		ref := model.Ref{Kind: model.KindEndpoint, Key: model.Key{Namespace: d.Namespace, Name: d.Name + "/" + m.ID}}
		o.Owned = append(o.Owned, model.Record{
			Ref: ref,
			Spec: model.Endpoint{
				Address: m.Address.String(), Ports: served, Exact: true, Labels: labels,
				Network: d.Network, Locality: m.Locality, Health: is.health(m, ref),
			},
		})
	}
	return o, left
}

// labels returns the tags of a machine that can be labels, and the service's own
// labels.
func (d Definition) labels(m Machine) (labels model.Labels, left int) {
	all := map[string]string{}
	for key, value := range m.Tags {
		if isLabel(key, value) {
			all[key] = value
		} else {
			left++
		}
	}
	maps.Copy(all, d.Labels)
	return model.MapOf(all), left
}

// isLabel reports whether a tag may be a label. The tag must be a valid Kubernetes
// label. Prefixes of Kubernetes, Istio and Isthmus are excluded: these labels have a
// meaning, and a machine must not set them.
func isLabel(key, value string) bool {
	prefix, _, found := strings.Cut(key, "/")
	reserved := found && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "istio.io", "isthmus.io"}, func(r string) bool {
		return prefix == r || strings.HasSuffix(prefix, "."+r)
	})
	return !reserved && len(content.IsLabelKey(key)) == 0 && len(content.IsLabelValue(value)) == 0
}
