package source

import (
	"fmt"
	"iter"
	"slices"

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

// Validate reports any other value.
func (l LocalAddresses) Validate() error {
	if l != AllowLocal && l != RejectLocal {
		return fmt.Errorf("localAddresses: %q is neither %s nor %s", string(l), AllowLocal, RejectLocal)
	}
	return nil
}

// excludesEndpoint returns why an endpoint of an object is rejected by itself; empty
// if it is not.
func (l LocalAddresses) excludesEndpoint(rec model.Record) (reason string) {
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

// excludesObject returns why an object is rejected as a whole. Such an object is a workload
// at a local address, or a service that clients look up by a local name. A service that loses
// all its endpoints is rejected, too, if its hosts would be looked up instead.
func (l LocalAddresses) excludesObject(rec model.Record, owned iter.Seq[model.Record]) (reason string) {
	if l != RejectLocal {
		return ""
	}
	switch spec := rec.Spec.(type) {
	case model.Workload:
		return l.excludesAddresses(spec.Endpoint)
	case model.Service:
		if looksUp(spec.Resolution) {
			return l.excludesLookups(spec, owned)
		}
	}
	return ""
}

func (l LocalAddresses) excludesLookups(service model.Service, owned iter.Seq[model.Record]) (reason string) {
	for rec := range owned {
		if reason = l.excludesEndpoint(rec); reason == "" {
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

// looksUp reports whether the hosts of a service without endpoints are looked up.
func looksUp(r model.Resolution) bool {
	return r == model.ResolutionDNS || r == model.ResolutionDNSRoundRobin || r == model.ResolutionDynamicDNS
}

// withoutLocal returns the owned records without endpoints at local addresses, and
// records a rejection for each of these.
func (r *reading) withoutLocal(o Object) []model.Record {
	for i, rec := range o.Owned {
		if r.local.excludesEndpoint(rec) == "" {
			continue
		}
		kept := append(make([]model.Record, 0, len(o.Owned)), o.Owned[:i]...)
		for _, rec := range o.Owned[i:] {
			if reason := r.local.excludesEndpoint(rec); reason != "" {
				r.rejectLocal(rec, o.Record, reason)
			} else {
				kept = append(kept, rec)
			}
		}
		return kept
	}
	return o.Owned
}

func (r *reading) rejectLocal(rec, owner model.Record, reason string) {
	ref, of := rec.Ref, owner.Ref
	ref.Source, of.Source = "", ""
	r.rejection = append(r.rejection, Rejection{
		Ref: ref, Place: owner.Place, Object: describe(ref), Where: owner.Place, Reason: reason, Outside: true, Owner: of,
	})
}

// dropLocal rejects a single record at a local address. Its earlier version is
// deleted, since the registry reports another address now.
func (r *reading) dropLocal(rec model.Record) (dropped bool) {
	reason := r.local.excludesEndpoint(rec)
	if reason == "" {
		return false
	}
	r.rejectLocal(rec, model.Record{Ref: rec.Owner}, reason)
	r.dropped[r.own(rec.Ref)] = true
	return true
}

// localRecords returns the stored objects, and records of other objects, that may not
// be at local addresses any more.
func (k *sink) localRecords() (objects, records map[model.Ref]bool) {
	objects, records = map[model.Ref]bool{}, map[model.Ref]bool{}
	if k.cfg.LocalAddresses != RejectLocal {
		return objects, records
	}
	owned := map[model.Ref][]model.Record{} // of services with hosts that may be looked up
	for rec := range k.all() {
		if service, ok := rec.Spec.(model.Service); ok && looksUp(service.Resolution) {
			owned[rec.Ref] = nil
		}
	}
	for rec := range k.all() {
		if list, is := owned[rec.Owner]; is {
			owned[rec.Owner] = append(list, rec)
		}
		if k.cfg.LocalAddresses.excludesEndpoint(rec) != "" {
			records[rec.Ref] = true
		}
	}
	for rec := range k.all() {
		if rec.Owner == (model.Ref{}) && k.cfg.LocalAddresses.excludesObject(rec, slices.Values(owned[rec.Ref])) != "" {
			objects[rec.Ref] = true
		}
	}
	return objects, records
}
