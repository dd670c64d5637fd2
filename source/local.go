package source

import (
	"fmt"
	"iter"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/model"
)

// LocalAddresses says whether a source may list endpoints on local addresses: loopback,
// link-local and unspecified addresses, and unix sockets. Each client that calls such an
// endpoint calls itself, so a registry could reach the admin interface of every proxy.
type LocalAddresses string

// Values of LocalAddresses. The zero value allows them, for sources without a
// configuration.
const (
	AllowLocal  LocalAddresses = "allow"
	RejectLocal LocalAddresses = "reject"
)

// OrDefault returns the default if there is no value. A registry of this machine's own files may list
// such addresses.
func (l LocalAddresses) OrDefault(own bool) LocalAddresses {
	switch {
	case l != "":
		return l
	case own:
		return AllowLocal
	default:
		return RejectLocal
	}
}

// Validate reports any other value.
func (l LocalAddresses) Validate() error {
	if l != AllowLocal && l != RejectLocal {
		return fmt.Errorf("localAddresses: %q is neither %s nor %s", string(l), AllowLocal, RejectLocal)
	}
	return nil
}

// ExcludesEndpoint returns why an endpoint of an object is rejected by itself; empty
// if it is not.
func (l LocalAddresses) ExcludesEndpoint(rec model.Record) (reason string) {
	endpoint, ok := rec.Spec.(model.Endpoint)
	if !ok {
		return ""
	}
	return l.excludesAddresses(endpoint)
}

func (l LocalAddresses) excludesAddresses(e model.Endpoint) (reason string) {
	if reason = l.excludesAddress(e.Address); reason != "" {
		return reason
	}
	for address := range e.Also.All() {
		if reason = l.excludesAddress(address); reason != "" {
			return reason
		}
	}
	return ""
}

func (l LocalAddresses) excludesAddress(address string) (reason string) {
	if l != RejectLocal {
		return ""
	}
	kind := loopback.EndpointKind(address)
	if kind == "" {
		return ""
	}
	return fmt.Sprintf("%s is %s, which means another machine to each client: register an address that all clients reach, or set localAddresses: allow for the source", address, kind)
}

// ExcludesObject returns why an object is rejected as a whole. Such an object is a workload
// at a local address, or a service that clients look up by a local name. A service that loses
// all its endpoints is rejected, too, if its hosts would be looked up instead.
func (l LocalAddresses) ExcludesObject(rec model.Record, owned iter.Seq[model.Record]) (reason string) {
	if l != RejectLocal {
		return ""
	}
	switch spec := rec.Spec.(type) {
	case model.Workload:
		return l.excludesAddresses(spec.Endpoint)
	case model.Service:
		if spec.Resolution.LooksUp() {
			return l.excludesLookups(spec, owned)
		}
	}
	return ""
}

func (l LocalAddresses) excludesLookups(service model.Service, owned iter.Seq[model.Record]) (reason string) {
	for rec := range owned {
		if reason = l.ExcludesEndpoint(rec); reason == "" {
			return "" // this endpoint is looked up
		}
	}
	if reason != "" {
		return "of its endpoints none is left, and its hosts would be looked up instead: " + reason
	}
	if service.WorkloadSelector.Len() > 0 {
		return ""
	}
	for host := range service.Hosts.All() {
		if reason = l.excludesAddress(host); reason != "" {
			return "it has no endpoints, so its hosts are looked up: " + reason
		}
	}
	return ""
}
