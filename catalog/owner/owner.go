// Package owner has the order of services that ask for one thing.
package owner

import (
	"cmp"

	"github.com/isthmus-mesh/isthmus/internal/order"
)

// Standing is the properties of a record that decide whether its service owns a name or an address.
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

// CompareNames orders two claims to a name. Own means that the namespace of the claim is that of
// the workloads for which it is decided.
func CompareNames(a, b Standing, ownA, ownB bool) int {
	return cmp.Or(order.TrueFirst(a.Given, b.Given), order.TrueFirst(ownA, ownB), order.TrueFirst(a.Home, b.Home), a.compareSources(b))
}

// CompareAddresses orders two claims to an address, likewise.
func CompareAddresses(a, b Standing, ownA, ownB bool) int {
	return cmp.Or(order.TrueFirst(b.Yields, a.Yields), order.TrueFirst(ownA, ownB), a.compareSources(b))
}

func (s Standing) compareSources(o Standing) int {
	return cmp.Or(cmp.Compare(s.Rank, o.Rank), cmp.Compare(s.Source, o.Source), CompareAges(s.Created, o.Created))
}

// CompareAges puts the older one first, and unknown ages last.
func CompareAges(a, b int64) int {
	return cmp.Or(order.TrueFirst(a != 0, b != 0), cmp.Compare(a, b))
}
