package catalog

import (
	"cmp"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog/owner"
	"github.com/isthmus-mesh/isthmus/model"
)

// Asked is a thing that several services may ask for, but only one owns.
type Asked struct {
	name             bool
	cluster, address string
}

var (
	// Address is any IP address, a block of addresses, or a port of all addresses.
	Address = Asked{}
	// Name is a host, or a domain that follows from one.
	Name = Asked{name: true}
)

// At is a single IP address in canonical form, for workloads of a cluster. It is asked for with the standing of the
// record that has it.
func At(cluster, address string) Asked { return Asked{cluster: cluster, address: address} }

// Standing is the properties of a service that decide which service owns a requested thing.
type Standing = owner.Standing

// RecordOf returns the record whose standing counts when a service asks for a name or an address.
func (t Asked) RecordOf(d *Definition) model.Ref {
	source := d.StandingAt(t.cluster, t.address).Source
	for _, c := range d.Records {
		if c.Record.Source == source && c.LeftOut == "" {
			return c.Record
		}
	}
	return d.Records[0].Record
}

// Owner orders two services that ask for one thing, for workloads of a namespace. It is
// negative if the first service owns the thing. This is the only order of ownership:
//
//  1. a name belongs to the service whose source was given it; an address does not belong to
//     a record of a source that yields;
//  2. the workloads' own namespace;
//  3. a name that names the namespace of the service;
//  4. the order of sources;
//  5. the older service, where an API server vouches for the time;
//  6. namespace, then host.
//
// Services with a name of another namespace are not compared here: see
// [Definition.ExportTo]. Addresses that differ by cluster are compared only with addresses
// in the same cluster.
func (t Asked) Owner(namespace string, a, b ServiceDefinition) int {
	return cmp.Or(t.Precedence(namespace, a, b), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Host, b.Key.Host))
}

// Precedence is the order of [Asked.Owner] without its last step. It is zero if only the
// services' own names differ.
func (t Asked) Precedence(namespace string, a, b ServiceDefinition) int {
	own := func(s ServiceDefinition) bool { return namespace != "" && s.Key.Namespace == namespace }
	if t.name {
		return owner.CompareNames(a.Standing, b.Standing, own(a), own(b))
	}
	return owner.CompareAddresses(a.StandingAt(t.cluster, t.address), b.StandingAt(t.cluster, t.address), own(a), own(b))
}

// standing returns the standing of a service by one of its records.
func (m *merging) standing(key ServiceKey, r *serviceRecord) Standing {
	s := Standing{Given: m.gives(r.ref.Source, key.Host), Yields: m.rights[r.ref.Source].Yields, Rank: r.rank, Source: r.ref.Source}
	home, bound := m.homes.Of(key.Host)
	s.Home = bound && home == key.Namespace
	s.Created = m.vouched(r.ref.Source, r.path, r.spec.Created)
	return s
}

// vouched returns a time of creation in nanoseconds since 1970; zero unless an API server
// vouches for it.
func (m *merging) vouched(source string, path model.Path, created time.Time) int64 {
	if !m.rights[source].Dated || path != "" || !created.After(time.Unix(0, 0)) {
		return 0
	}
	return created.UnixNano()
}

// keepHome limits a service to its own namespace if its host names another namespace,
// unless its source was given the host.
func (m *merging) keepHome(key ServiceKey, d *Definition, by model.Ref) {
	home, bound := m.homes.Of(key.Host)
	if !bound || home == key.Namespace || d.Given {
		return
	}
	said, own := d.ExportTo, "~"
	if d.VisibleTo(key.Namespace, key.Namespace) {
		own = "."
	}
	d.ExportTo = model.ListOf(own)
	if d.ExportTo.Equal(said) || said.Equal(model.ListOf(key.Namespace)) {
		return
	}
	kept := model.Ref{Kind: model.KindService, Key: model.Key{Namespace: home, Name: key.Host}}
	reason := fmt.Sprintf("the name belongs to namespace %s, whether or not a service has it: namespace %s alone sees this one; "+
		"choose another host, or give it to source %s with owns.hosts", home, key.Namespace, by.Source)
	if home == "" {
		reason = fmt.Sprintf("the wildcard covers names of all namespaces of a cluster: namespace %s alone sees this service; "+
			"choose another host, or give it to source %s with owns.hosts", key.Namespace, by.Source)
	}
	d.Conflicts = append(d.Conflicts, Conflict{Field: "host", Kept: kept, Lost: by, Reason: reason})
}
