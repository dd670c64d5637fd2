package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Only confines a source: objects that its registry lists outside of it are rejected,
// and never stored. The zero value confines nothing.
type Only struct {
	// Hosts are patterns, as [model.HostWithin] takes them. All hosts of a service must
	// be among them, and its workloads serve no other hosts, whoever defines these.
	Hosts []string `json:"hosts"`
	// Namespaces are the namespaces of its objects.
	Namespaces []string `json:"namespaces"`
	// Addresses are blocks that contain every address of its services. A source that
	// is confined by Hosts and has no Addresses gives up addresses that other
	// sources' services have: see [Only.Yields].
	Addresses []string `json:"addresses"`
}

// Validate reports every invalid pattern.
func (o Only) Validate() error {
	errs := patternFaults(o.Hosts)
	for i, namespace := range o.Namespaces {
		if !isLabel(namespace) {
			errs = append(errs, fmt.Errorf("namespaces[%d]: %q is not a namespace; write at most 63 lower-case letters, digits and dashes, such as shop", i, namespace))
		}
	}
	for i, text := range o.Addresses {
		switch block, ok := blockOf(text); {
		case !ok:
			errs = append(errs, fmt.Errorf("addresses[%d]: %q is not an address block, such as 10.96.0.0/12, fd00::/64 or 10.0.0.1", i, text))
		case block.Masked() != block:
			errs = append(errs, fmt.Errorf("addresses[%d]: %q has bits set after its prefix; write %s", i, text, block.Masked()))
		}
	}
	return errors.Join(errs...)
}

// Yields reports whether the source gives up every address that another source's
// service has: it is confined to hosts, and no Addresses are configured.
func (o Only) Yields() bool { return len(o.Hosts) > 0 && len(o.Addresses) == 0 }

func isPattern(host string) bool {
	if host == "*" {
		return true
	}
	name := model.Name(strings.TrimPrefix(host, "*."))
	return len(host) <= 255 && !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool { return !isLabel(part) })
}

func isLabel(s string) bool {
	strange := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, strange) && s[0] != '-' && s[len(s)-1] != '-'
}

// Confines reports whether any object of a registry may be outside.
func (o Only) Confines() bool { return len(o.Hosts)+len(o.Namespaces)+len(o.Addresses) > 0 }

// Excludes returns why an object is outside; empty if it is not, or if its kind is
// reserved. Owned records go with their object. For a source that is not confined,
// services with too large blocks of addresses are outside.
func (o Only) Excludes(rec model.Record) (reason string) {
	if rec.Kind.Reserved() {
		return ""
	}
	if reason := o.excludesPlace(rec); reason != "" {
		return reason
	}
	service, _ := rec.Spec.(model.Service)
	return o.excludesAddresses(service.Addresses)
}

// excludesPlace returns why the namespace or the hosts of an object are outside.
func (o Only) excludesPlace(rec model.Record) (reason string) {
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

// hostsOf returns the hosts of an object, and whether its kind has hosts at all. A
// workload serves services that select it, among the hosts that the source may have.
func hostsOf(rec model.Record) (hosts []string, said bool) {
	switch spec := rec.Spec.(type) {
	case model.Service:
		return slices.Collect(spec.Hosts.All()), true
	case model.Consumption:
		return []string{spec.Consumer.Host}, true
	case model.Split:
		return []string{spec.Host}, true
	case model.Workload:
		return nil, true
	default:
		return nil, false
	}
}

// Confine stores in a workload which hosts it may serve.
func (o Only) Confine(spec model.Spec) model.Spec {
	workload, ok := spec.(model.Workload)
	if !ok {
		return spec
	}
	workload.Only = model.ListOf(o.Hosts...)
	return workload
}
