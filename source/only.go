package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Only confines a source to a part of what there is: what its registry lists outside
// of that is rejected, and is never stored. The zero value confines to nothing.
type Only struct {
	// Hosts are patterns, as [model.HostWithin] takes them. All hosts of a service are
	// among them, and its workloads serve no others, whoever defines these.
	Hosts []string `json:"hosts"`
	// Namespaces are where its objects are.
	Namespaces []string `json:"namespaces"`
}

// Validate reports every pattern that stands for nothing.
func (o Only) Validate() error {
	var errs []error
	for i, host := range o.Hosts {
		if !isPattern(host) {
			errs = append(errs, fmt.Errorf(`hosts[%d]: %q is no host; write a DNS name, "*." and a domain, such as "*.example.com", or "*"`, i, host))
		}
	}
	for i, namespace := range o.Namespaces {
		if !isLabel(namespace) {
			errs = append(errs, fmt.Errorf("namespaces[%d]: %q is not a namespace; write at most 63 lower-case letters, digits and dashes, such as shop", i, namespace))
		}
	}
	return errors.Join(errs...)
}

func isPattern(host string) bool {
	if host == "*" {
		return true
	}
	name := strings.ToLower(strings.TrimPrefix(host, "*."))
	return len(host) <= 255 && !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return !isLabel(part) })
}

func isLabel(s string) bool {
	strange := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, strange) && s[0] != '-' && s[len(s)-1] != '-'
}

func (o Only) empty() bool { return len(o.Hosts) == 0 && len(o.Namespaces) == 0 }

// excludes says why an object is outside; empty if it is not, or if it is Isthmus's
// own. What an object owns goes with it.
func (o Only) excludes(rec model.Record) (reason string) {
	if o.empty() || rec.Kind.Reserved() {
		return ""
	}
	if len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, rec.Namespace) {
		return fmt.Sprintf("the source is confined to the namespaces %s by its only.namespaces, and this is in %q: add that, or have the registry list it elsewhere",
			strings.Join(o.Namespaces, ", "), rec.Namespace)
	}
	if len(o.Hosts) == 0 {
		return ""
	}
	hosts, said := hostsOf(rec)
	if !said && len(o.Namespaces) == 0 {
		return fmt.Sprintf("the source is confined by only.hosts, which says nothing of a %s: name its namespaces in only.namespaces, too", rec.Kind)
	}
	for _, host := range hosts {
		if !model.HostWithin(host, model.ListOf(o.Hosts...)) {
			return fmt.Sprintf("the source is confined to the hosts %s by its only.hosts, and %q is none of them: add it, or have the registry list it without",
				strings.Join(o.Hosts, ", "), host)
		}
	}
	return ""
}

// hostsOf returns the hosts that an object is about, and whether it is about hosts
// at all. A workload serves those that select it, among those that the source may have.
func hostsOf(rec model.Record) (hosts []string, said bool) {
	switch spec := rec.Spec.(type) {
	case model.Service:
		return slices.Collect(spec.Hosts.All()), true
	case model.Consumption:
		return []string{spec.Consumer.Host}, true
	case model.Workload:
		return nil, true
	default:
		return nil, false
	}
}

// confine has a workload say which hosts it may serve.
func (o Only) confine(spec model.Spec) model.Spec {
	workload, ok := spec.(model.Workload)
	if !ok {
		return spec
	}
	workload.Only = model.ListOf(o.Hosts...)
	return workload
}
