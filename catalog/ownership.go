package catalog

import (
	"cmp"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Asked is a kind of thing that several services may ask for, but only one owns.
type Asked uint8

const (
	// Address is an IP address, a block of addresses, or a port of all addresses.
	Address Asked = iota
	// Name is a host, or a domain that follows from one.
	Name
)

// Standing is the properties of a service that decide which service owns a requested thing.
type Standing struct {
	// Given means that the source was given the host on purpose.
	Given bool
	// Home means that the host names the namespace of the service, as
	// NAME.NAMESPACE.svc.DOMAIN does.
	Home bool
	// Yields means that the source gives up addresses that other sources' services have.
	Yields bool
	// Rank orders the records that define services: by the length of their path, then by their
	// source. Sources without a place in the order share the last rank of a length. Ranks have
	// gaps, so only their order within one snapshot is meaningful.
	Rank int
	// Source is the source of the record.
	Source string
	// Created is when the record was created, in nanoseconds since 1970. It is zero unless
	// an API server vouches for it.
	Created int64
}

// Owner orders two services that ask for one thing, for workloads of a namespace. It is
// negative if the first service owns the thing. This is the only order of ownership:
//
//  1. a name belongs to the service whose source was given it; an address does not belong to
//     a source that yields;
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
	near := trueFirst(own(a), own(b))
	bySource := cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Source, b.Source), compareAges(a.Created, b.Created))
	if t == Name {
		return cmp.Or(trueFirst(a.Given, b.Given), near, trueFirst(a.Home, b.Home), bySource)
	}
	return cmp.Or(trueFirst(b.Yields, a.Yields), near, bySource)
}

// trueFirst is negative if a alone is true.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// compareAges puts the older one first, and unknown ages last.
func compareAges(a, b int64) int {
	return cmp.Or(trueFirst(a != 0, b != 0), cmp.Compare(a, b))
}

// standing returns the standing of a service with a first record.
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
	d.Conflicts = append(d.Conflicts, Conflict{"host", kept, by, reason})
}
