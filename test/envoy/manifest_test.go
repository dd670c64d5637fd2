package envoy_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// The objects that tests write. Their JSON is that of Istio's API.
type (
	service struct {
		Name      string
		Namespace string // default: shop
		Created   time.Time
		Spec      serviceSpec
	}
	serviceSpec struct {
		Hosts      []string   `json:"hosts"`
		Addresses  []string   `json:"addresses,omitempty"`
		Ports      []port     `json:"ports"`
		Location   string     `json:"location,omitempty"`
		Resolution string     `json:"resolution"`
		Endpoints  []endpoint `json:"endpoints,omitempty"`
		Selector   *selector  `json:"workloadSelector,omitempty"`
		ExportTo   []string   `json:"exportTo,omitempty"`
	}
	port struct {
		Number     uint32 `json:"number"`
		Name       string `json:"name"`
		Protocol   string `json:"protocol,omitempty"`
		TargetPort uint32 `json:"targetPort,omitempty"`
	}
	endpoint struct {
		Address  string            `json:"address,omitempty"`
		Ports    map[string]uint32 `json:"ports,omitempty"`
		Labels   map[string]string `json:"labels,omitempty"`
		Network  string            `json:"network,omitempty"`
		Locality string            `json:"locality,omitempty"`
		Weight   uint32            `json:"weight,omitempty"`
		Account  string            `json:"serviceAccount,omitempty"`
	}
	selector struct {
		Labels map[string]string `json:"labels"`
	}
	workload struct {
		Name      string
		Namespace string // default: shop
		Spec      endpoint
	}
)

// object is what a file is made of.
type object interface{ manifest() any }

func (s service) manifest() any {
	m := manifest("ServiceEntry", cmp.Or(s.Name, nameOf(s.Spec.Hosts[0])), s.Namespace, s.Spec)
	if !s.Created.IsZero() {
		m["metadata"].(map[string]string)["creationTimestamp"] = s.Created.Format(time.RFC3339)
	}
	return m
}

func (s service) namespace() string { return cmp.Or(s.Namespace, shop) }

func (w workload) manifest() any { return manifest("WorkloadEntry", w.Name, w.Namespace, w.Spec) }

func manifest(kind, name, namespace string, spec any) map[string]any {
	return map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": kind, "spec": spec,
		"metadata": map[string]string{"name": name, "namespace": cmp.Or(namespace, shop)},
	}
}

// nameOf makes the name of an object from a host.
func nameOf(host string) string { return strings.ReplaceAll(host, "*", "any") }

// text is a file of objects, which is YAML.
func text(objects ...object) []byte {
	documents := make([]string, len(objects))
	for i, o := range objects {
		document, err := json.Marshal(o.manifest())
		if err != nil {
			panic(err)
		}
		documents[i] = string(document)
	}
	return []byte(strings.Join(documents, "\n---\n") + "\n")
}

// selects reports whether a workload is an endpoint of a service.
func (s service) selects(w workload) bool {
	if s.Spec.Selector == nil || cmp.Or(s.Namespace, shop) != cmp.Or(w.Namespace, shop) {
		return false
	}
	return hasAll(w.Spec.Labels, s.Spec.Selector.Labels)
}

// endpoints are those of a service, wherever they are written.
func (s service) endpoints(objects []object) []endpoint {
	list := slices.Clone(s.Spec.Endpoints)
	for _, o := range objects {
		if w, ok := o.(workload); ok && s.selects(w) {
			list = append(list, w.Spec)
		}
	}
	return list
}

// visible reports whether workloads of the namespace shop may see a service.
func (s service) visible() bool {
	switch home := cmp.Or(s.Namespace, shop); {
	case len(s.Spec.ExportTo) == 0, slices.Contains(s.Spec.ExportTo, "*"), slices.Contains(s.Spec.ExportTo, shop):
		return true
	default:
		return home == shop && slices.Contains(s.Spec.ExportTo, ".")
	}
}

// hasAll reports whether an endpoint has all of some labels.
func hasAll(labels, all map[string]string) bool {
	for key, value := range all {
		if labels[key] != value {
			return false
		}
	}
	return true
}
