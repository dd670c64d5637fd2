package servicecenter

import (
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/model"
)

// Instance is an instance of the registry, as far as it is read.
type Instance struct {
	ID         string            `json:"instanceId"`
	ServiceID  string            `json:"serviceId"`
	Endpoints  []string          `json:"endpoints"`
	HostName   string            `json:"hostName"`
	Status     string            `json:"status"`
	Properties map[string]string `json:"properties"`
	DataCenter dataCenter        `json:"dataCenterInfo"`
	Version    string            `json:"version"`

	broken string // why it could not be read completely; empty if it could
}

type dataCenter struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	Zone   string `json:"availableZone"`
}

// Labels of endpoints beside their properties.
const (
	labelName     = "name"
	labelInstance = "serviceCenterInstanceId"
	labelVersion  = "version"
)

// weightProperty is the property that becomes the weight, and heaviest its bound.
const (
	weightProperty = "weight"
	heaviest       = 1_000_000
)

// health returns whether an instance is to be given traffic. An instance without a
// status is up, as in the registry.
func (i Instance) health(serveTesting bool) model.Health {
	switch i.Status {
	case "UP", "":
		return model.Healthy
	case "TESTING":
		if serveTesting {
			return model.Healthy
		}
	case "OUTOFSERVICE":
		return model.Draining
	}
	return model.Unhealthy
}

// locality returns the data centre. A zone is of no use without its region.
func (i Instance) locality() model.Locality {
	part := func(s string) string { return strings.ReplaceAll(s, "/", "-") }
	l := model.Locality{Region: part(i.DataCenter.Region), Zone: part(i.DataCenter.Zone)}
	if l.Region == "" {
		l.Region = part(i.DataCenter.Name)
	}
	if l.Region == "" {
		return model.Locality{}
	}
	return l
}

// weight returns the value of the weight property, zero if missing or invalid.
func (i Instance) weight() uint32 {
	n, err := strconv.ParseUint(i.Properties[weightProperty], 10, 32)
	if err != nil || n > heaviest {
		return 0
	}
	return uint32(n)
}

// labels returns the properties that can be labels and the added labels, which win;
// and the number of properties left out.
func (i Instance) labels(isKey, isValue func(string) bool) (labels model.Labels, left int) {
	all := make(map[string]string, len(i.Properties)+3)
	maps.Copy(all, i.Properties)
	if i.weight() > 0 {
		delete(all, weightProperty)
	}
	for key, value := range all {
		if !isKey(key) || !isValue(value) {
			delete(all, key)
			left++
		}
	}
	for key, value := range map[string]string{labelName: i.HostName, labelVersion: i.Version, labelInstance: i.ID} {
		if sanitized := sanitizeWord(value); sanitized != "" {
			all[key] = sanitized
		}
	}
	return model.MapOf(all), left
}

// isLabelKey reports whether a property of that name may be a label. The name must be
// a valid label key. Prefixes of Kubernetes, Istio and Isthmus are excluded: these
// labels have a meaning, and the registry must not set them.
func isLabelKey(key string) bool {
	if prefix, _, found := strings.Cut(key, "/"); found && isReserved(prefix) {
		return false
	}
	return len(content.IsLabelKey(key)) == 0
}

func isReserved(prefix string) bool {
	for _, reserved := range []string{"kubernetes.io", "k8s.io", "istio.io", "isthmus.io"} {
		if prefix == reserved || strings.HasSuffix(prefix, "."+reserved) {
			return true
		}
	}
	return false
}

// remember evaluates a predicate once for each text. The instances of a service,
// possibly thousands, have the same keys and mostly the same values.
func remember(holds func(string) bool) func(string) bool {
	known := map[string]bool{}
	return func(s string) bool {
		ok, asked := known[s]
		if !asked {
			ok = holds(s)
			known[s] = ok
		}
		return ok
	}
}

func isLabelValue(s string) bool { return len(content.IsLabelValue(s)) == 0 }
