package admin

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// Share is the share of a backend in the calls to a port of a service.
type Share struct {
	ServicePort uint32            `json:"servicePort"`
	Host        string            `json:"host,omitempty"`      // of the backend's endpoints, if it is another one
	Namespace   string            `json:"namespace,omitempty"` // of that host
	Source      string            `json:"source,omitempty"`    // of the endpoints; left out for any
	Labels      map[string]string `json:"labels,omitempty"`    // likewise
	Weight      uint32            `json:"weight"`              // as configured
	Asked       float64           `json:"asked"`               // the weight, as a part of 1
	// Effective is the share in force, as a part of 1: backends without a healthy endpoint pass
	// theirs to the others. It is 0 for all while the split has no effect.
	Effective float64 `json:"effective"`
	Usable    int     `json:"usable"`            // healthy endpoints
	LeftOut   string  `json:"leftOut,omitempty"` // why the endpoints of another host are left out
	// Zones has the share in force for each zone with endpoints, if near endpoints come first.
	Zones []ZoneShare `json:"zones,omitempty"`
}

// ZoneShare is the share of a backend in the calls from a zone.
type ZoneShare struct {
	Region    string  `json:"region"`
	Zone      string  `json:"zone"`
	Effective float64 `json:"effective"` // as a part of 1
}

// ConfigSplit is a split of a configuration.
type ConfigSplit struct {
	Namespace string        `json:"namespace"`
	Host      string        `json:"host"`
	Locality  string        `json:"locality"` // as configured
	Backends  []SplitTarget `json:"backends"`
}

// SplitTarget is a backend of a split of a configuration.
type SplitTarget struct {
	Host      string            `json:"host,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Source    string            `json:"source,omitempty"`
	Subset    string            `json:"subset,omitempty"` // which has the labels
	Labels    map[string]string `json:"labels,omitempty"`
	Weight    int               `json:"weight"`
}

func sharesOf(service *catalog.Service) (list []Share) {
	for _, port := range service.Ports {
		zones := sharesByZone(service, port.Number)
		for i, s := range service.Shares(port.Number) {
			one := Share{
				port.Number, s.Service.Host, s.Service.Namespace, s.Source, s.Labels.Map(), s.Weight, rounded(s.Asked), rounded(s.Effective), s.Usable, s.LeftOut, nil,
			}
			for _, z := range zones {
				one.Zones = append(one.Zones, ZoneShare{z.region, z.name, rounded(z.shares[i])})
			}
			list = append(list, one)
		}
	}
	return list
}

// localityOf returns the locality of a split, as it is configured; empty without a split.
func localityOf(s *split.Split) string {
	switch {
	case s == nil:
		return ""
	case s.NearFirst:
		return "first"
	default:
		return "ignore"
	}
}

// sharesText describes the shares in force at a port, such as "source legacy gets 90 %,
// source east gets 10 %"; empty without a split.
func sharesText(service *catalog.Service, port uint32) string {
	shares := service.Shares(port)
	switch {
	case len(shares) == 0:
		return ""
	case !service.IsDivided(port):
		return "the split of the host has no effect: no backend with a share has a healthy endpoint"
	}
	var parts []string
	for _, s := range shares {
		parts = append(parts, fmt.Sprintf("%s gets %.4g %%", backendName(s.Backend), 100*s.Effective))
	}
	return strings.Join(parts, ", ")
}

// rounded cuts a share to a hundredth of a percent.
func rounded(share float64) float64 { return math.Round(share*10_000) / 10_000 }

// servedBy returns the endpoint that clients are given by the record of one that a service joins. A split
// may leave it out.
func servedBy(service *catalog.Service, port uint32, e catalog.Endpoint) (served catalog.Endpoint, ok bool) {
	for _, at := range service.Endpoints(port).AtPort(e.ID(port).Address, e.Port) {
		if at.Record == e.Record {
			return at, true
		}
	}
	return catalog.Endpoint{}, false
}

// splits adds the splits that do not divide calls as they ask.
func (c Config) splits(f *findings, snapshot *catalog.Snapshot, outputs []served) {
	for _, s := range c.Splits {
		unmetSplit(f, snapshot, outputs, catalog.KeyOf(s.Namespace, s.Host), "split of "+s.Host)
	}
	for s := range snapshot.Splits() {
		if first := s.Records[0]; first.LeftOut == "" { // otherwise a conflict, or a rejected object
			unmetSplit(f, snapshot, outputs, s.Key, first.Record.String())
		}
	}
}

// unmetSplit adds the reasons why a split does not divide calls as it asks.
func unmetSplit(f *findings, snapshot *catalog.Snapshot, outputs []served, key catalog.ServiceKey, about string) {
	service, known := snapshot.Service(key)
	next := "isthmus services " + quoted(key.Host)
	if !known {
		next = "compare host and namespace with 'isthmus services'"
	}
	for _, problem := range unmetShares(key, service) {
		f.add(SeverityWarning, about, time.Time{}, problem, next)
	}
	for _, o := range outputs {
		if !known || o.InexactShares == nil {
			continue
		}
		if reason := o.InexactShares(service); reason != "" {
			f.add(SeverityNotice, about, time.Time{}, fmt.Sprintf("not exact at output %s: %s", o.name, reason), "for exact shares: loadBalancer: {simple: ROUND_ROBIN} for the host")
		}
	}
	if !known {
		return
	}
	for _, port := range service.Ports {
		if differ := unmetByZone(service, port.Number); differ != "" && unmet(service, port.Number) == "" {
			f.add(SeverityNotice, about, time.Time{}, fmt.Sprintf("at port %d clients that use near endpoints first get other shares: %s", port.Number, differ), next)
		}
	}
	if service.Split.IgnoresLocality() && service.Traffic.Near() {
		f.add(SeverityNotice, about, time.Time{}, fmt.Sprintf("the registry asks clients to use near endpoints first (%s); with shares, clients treat all endpoints alike", service.Traffic.Prefer),
			"set locality: first in a split of the configuration to use near endpoints first")
	}
}

// unmetShares lists the reasons why the split of a service does not divide calls as it asks.
// The service is nil if no source lists it.
func unmetShares(key catalog.ServiceKey, service *catalog.Service) (reasons []string) {
	if service == nil {
		return []string{fmt.Sprintf("no source lists the host %s in namespace %q, so the split has no effect", key.Host, key.Namespace)}
	}
	for _, port := range service.Ports {
		if problem := unmet(service, port.Number); problem != "" {
			reasons = append(reasons, fmt.Sprintf("at port %d %s", port.Number, problem))
		}
	}
	return reasons
}

// UnmetSplits lists the splits of a configuration, and of records, that do not divide calls as
// they ask, each with the reason.
func UnmetSplits(splits []ConfigSplit, snapshot *catalog.Snapshot) (list []string) {
	f := findings{list: []Finding{}}
	Config{Splits: splits}.splits(&f, snapshot, nil)
	for _, one := range f.list {
		list = append(list, one.About+": "+one.Problem)
	}
	return list
}

// unmet explains why backends do not get the shares that they ask for; empty if they do.
func unmet(service *catalog.Service, port uint32) string {
	shares := service.Shares(port)
	var empty []string
	for _, s := range shares {
		if s.Weight > 0 && s.Usable == 0 {
			why := "has no healthy endpoint"
			if s.LeftOut != "" {
				why = "is left out: " + s.LeftOut
			}
			empty = append(empty, fmt.Sprintf("%s asks for %.4g %% and %s", backendName(s.Backend), 100*s.Asked, why))
		}
	}
	switch {
	case len(empty) == 0:
		return ""
	case !service.IsDivided(port):
		return "no backend with a share has a healthy endpoint, so all endpoints are served as without a split: " + strings.Join(empty, "; ")
	default:
		return strings.Join(empty, "; ") + ": the other backends get its calls"
	}
}

// backendName describes a backend as its entry in the configuration does.
func backendName(b model.Backend) string {
	var parts []string
	if b.Service.Host != "" {
		parts = append(parts, "host "+b.Service.Host)
	}
	if b.Source != "" {
		parts = append(parts, "source "+b.Source)
	}
	var labels []string
	for name, value := range b.Labels.All() {
		labels = append(labels, name+"="+value)
	}
	if len(labels) > 0 {
		parts = append(parts, strings.Join(labels, ","))
	}
	return cmp.Or(strings.Join(parts, " with "), "the host itself")
}
