package admin

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
)

// Share is the share of a backend in the calls to a port of a service.
type Share struct {
	ServicePort uint32            `json:"servicePort"`
	Source      string            `json:"source,omitempty"` // of the backend's endpoints; left out for any
	Labels      map[string]string `json:"labels,omitempty"` // likewise
	Weight      uint32            `json:"weight"`           // as configured
	Asked       float64           `json:"asked"`            // the weight, as a part of 1
	// Effective is the share in force, as a part of 1: backends without a healthy endpoint pass
	// theirs to the others. It is 0 for all while the split has no effect.
	Effective float64 `json:"effective"`
	Usable    int     `json:"usable"` // healthy endpoints
}

// ConfigSplit names a service whose calls the configuration in use divides.
type ConfigSplit struct {
	Namespace string `json:"namespace"`
	Host      string `json:"host"`
}

func sharesOf(service *catalog.Service) (list []Share) {
	for _, port := range service.Ports {
		for _, s := range service.Shares(port.Number) {
			list = append(list, Share{port.Number, s.Source, s.Labels.Map(), s.Weight, rounded(s.Asked), rounded(s.Effective), s.Usable})
		}
	}
	return list
}

// rounded cuts a share to a hundredth of a percent.
func rounded(share float64) float64 { return math.Round(share*10_000) / 10_000 }

// isLeftOut reports whether a service's split gives no calls to an endpoint.
func isLeftOut(service *catalog.Service, port uint32, e catalog.Endpoint) bool {
	if !service.IsDivided(port) {
		return false
	}
	_, served := service.Endpoints(port).Get(e.Address, e.Port)
	return !served
}

// splits adds the splits that do not divide calls as they ask.
func (c Config) splits(f *findings, snapshot *catalog.Snapshot) {
	for _, s := range c.Splits {
		about, look := fmt.Sprintf("split of %s", s.Host), "isthmus services "+quoted(s.Host)
		service, known := snapshot.Service(catalog.ServiceKey{Namespace: s.Namespace, Host: s.Host})
		if !known {
			f.add(SeverityWarning, about, time.Time{}, fmt.Sprintf("no source lists the host in namespace %q, so the split has no effect", s.Namespace),
				"compare host and namespace with 'isthmus services'")
			continue
		}
		for _, port := range service.Ports {
			if problem := unmet(service, port.Number); problem != "" {
				f.add(SeverityWarning, about, time.Time{}, fmt.Sprintf("at port %d %s", port.Number, problem), look)
			}
		}
	}
}

// unmet explains why backends do not get the shares that they ask for; empty if they do.
func unmet(service *catalog.Service, port uint32) string {
	shares := service.Shares(port)
	if len(shares) > 0 && !service.IsDivided(port) {
		return "no backend with a share has a healthy endpoint, so all endpoints are served as without a split"
	}
	var empty []string
	for _, s := range shares {
		if s.Weight > 0 && s.Usable == 0 {
			empty = append(empty, fmt.Sprintf("%s asks for %.4g %% and has no healthy endpoint", backendName(s.Backend), 100*s.Asked))
		}
	}
	if len(empty) == 0 {
		return ""
	}
	return strings.Join(empty, "; ") + ": the other backends get its calls"
}

// backendName describes a backend as its entry in the configuration does.
func backendName(b split.Backend) string {
	var labels []string
	for name, value := range b.Labels.All() {
		labels = append(labels, name+"="+value)
	}
	with := strings.Join(labels, ",")
	if with != "" && b.Source != "" {
		return fmt.Sprintf("source %s with %s", b.Source, with)
	}
	return cmp.Or(with, "source "+b.Source)
}
