package servicecenter

import (
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/isthmus-mesh/isthmus/model"
)

// Instance is what is read of an instance of the registry.
type Instance struct {
	ID         string            `json:"instanceId"`
	ServiceID  string            `json:"serviceId"`
	Endpoints  []string          `json:"endpoints"`
	HostName   string            `json:"hostName"`
	Status     string            `json:"status"`
	Properties map[string]string `json:"properties"`
	DataCenter dataCenter        `json:"dataCenterInfo"`
	Version    string            `json:"version"`

	broken string // what of it could not be read; empty if it could
}

type dataCenter struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	Zone   string `json:"availableZone"`
}

// The labels that endpoints have beside their properties.
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

// health says whether an instance is to be given traffic. One without a status
// is up, as in the registry.
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

// locality is the data centre. A zone is of no use without its region.
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

// weight is what the property of that name says, zero if nothing that counts.
func (i Instance) weight() uint32 {
	n, err := strconv.ParseUint(i.Properties[weightProperty], 10, 32)
	if err != nil || n > heaviest {
		return 0
	}
	return uint32(n)
}

// labels are the properties that can be labels and what the mapping adds, which
// wins; and how many properties were left out.
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

// isLabelKey reports whether a property of that name may be a label: Kubernetes
// takes it for the key of one, and its prefix is none of Kubernetes and Istio,
// which mean something and are not the registry's to give.
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

// remember asks once for each text. The instances of a service have the same keys,
// and mostly the same values, and there may be thousands of them.
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
