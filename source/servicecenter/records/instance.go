package records

import (
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/sanitize"
)

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
// status is up, as in the registry. One that asks for a weight of zero takes no traffic.
func (a announced) health(serveTesting bool) model.Health {
	up := model.Healthy
	if n, err := strconv.ParseUint(a.Properties[weightProperty], 10, 32); err == nil && n == 0 {
		up = model.Draining
	}
	switch a.Status {
	case "UP", "":
		return up
	case "TESTING":
		if serveTesting {
			return up
		}
	case "OUTOFSERVICE":
		return model.Draining
	}
	return model.Unhealthy
}

// locality returns the data centre. A zone is of no use without its region.
func (a announced) locality() model.Locality {
	part := func(s string) string { return strings.ReplaceAll(s, "/", "-") }
	l := model.Locality{Region: part(a.DataCenter.Region), Zone: part(a.DataCenter.Zone)}
	if l.Region == "" {
		l.Region = part(a.DataCenter.Name)
	}
	if l.Region == "" {
		return model.Locality{}
	}
	return l
}

// weight returns the value of the weight property, zero if missing or invalid.
func (a announced) weight() uint32 {
	n, err := strconv.ParseUint(a.Properties[weightProperty], 10, 32)
	if err != nil || n > heaviest {
		return 0
	}
	return uint32(n)
}

// labels returns the properties that can be labels and the added labels, which win;
// and the number of properties left out.
func (a announced) labels(isKey, isValue func(string) bool) (labels model.Labels, left int) {
	all := make(map[string]string, len(a.Properties)+3)
	maps.Copy(all, a.Properties)
	if a.weight() > 0 {
		delete(all, weightProperty)
	}
	for key, value := range all {
		if !isKey(key) || !isValue(value) {
			delete(all, key)
			left++
		}
	}
	for key, value := range map[string]string{labelName: a.HostName, labelVersion: a.Version, labelInstance: a.ID} {
		if sanitized := sanitize.Word(value); sanitized != "" {
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
