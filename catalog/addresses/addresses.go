// Package addresses unites the addresses of the records of a service.
package addresses

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/catalog/owner"
	"github.com/isthmus-mesh/isthmus/model"
)

// Record is a record of a service. Its addresses are in canonical form.
type Record struct {
	Ref       model.Ref
	Far       bool // it comes from another Isthmus
	Cluster   string
	Addresses model.List[string]
	owner.Standing
}

// List is the addresses that a service has for clients of one cluster.
type List struct {
	Cluster   string
	Addresses model.List[string]

	brought map[string]owner.Standing // of single addresses that a record of a later source has in its own right
}

// Equal reports whether both have the same addresses with the same standing.
func (l List) Equal(o List) bool {
	return l.Cluster == o.Cluster && l.Addresses.Equal(o.Addresses) && maps.Equal(l.brought, o.brought)
}

// Standing returns the standing of the record that has a single address, in canonical form; ok is false if that is the
// standing of the service.
func (l List) Standing(address string) (s owner.Standing, ok bool) {
	s, ok = l.brought[address]
	return s, ok
}

// Own returns the addresses with the standing of the service.
func (l List) Own() model.List[string] {
	if len(l.brought) == 0 {
		return l.Addresses
	}
	return model.ListOf(slices.DeleteFunc(slices.Clone(l.Addresses.Slice()), func(address string) bool { _, other := l.brought[address]; return other })...)
}

// Sources returns the sources of the addresses with a standing of their own; nil without one.
func (l List) Sources() map[string]string {
	if len(l.brought) == 0 {
		return nil
	}
	by := map[string]string{}
	for address, s := range l.brought {
		by[address] = s.Source
	}
	return by
}

// Lost is the addresses of a record that its service does not have.
type Lost struct {
	Kept, By  model.Ref // Kept has addresses that the service has in the cluster
	Addresses []string
}

// union is a list in the making.
type union struct {
	list  []string
	first *Record
	have  map[string]owner.Standing // by address
}

// Unite unites the addresses of records in merge order, by cluster. The base is the list of the first record's cluster,
// or that of no cluster if it has no address; others are the lists of other clusters. A list has all addresses of the
// source of its first record. A record of another source adds single addresses, each with its own standing:
//   - none to the base while it is empty, since a service without an address is called in another way;
//   - none if it comes from another Isthmus: two that read each other would keep them for ever.
func Unite(records []Record) (base List, others []List, lost []Lost) {
	first := &records[0]
	home := first.Cluster
	if first.Addresses.Len() == 0 {
		home = ""
	}
	if len(records) == 1 {
		return List{Cluster: home, Addresses: first.Addresses}, nil, nil
	}
	all := map[string]*union{home: {first: first, have: map[string]owner.Standing{}}}
	for i := range records {
		r := &records[i]
		u, kept := all[r.Cluster], first
		if u == nil {
			u = &union{first: r, have: map[string]owner.Standing{}}
		} else {
			kept = u.first
		}
		other, empty := r.Ref.Source != u.first.Ref.Source, len(u.list) == 0
		standing := r.Standing
		if r.Ref.Source == first.Ref.Source {
			standing = first.Standing
		}
		var left []string
		for address := range r.Addresses.All() {
			_, single := ip.Single(address)
			was, has := u.have[address]
			switch {
			case has && single && !(other && r.Far) && owner.CompareAddresses(standing, was, false, false) < 0:
				u.have[address] = standing
			case has:
			case r.Cluster == "" && home != "", other && (empty || r.Far || !single):
				left = append(left, address)
			default:
				u.list, u.have[address], all[r.Cluster] = append(u.list, address), standing, u
			}
		}
		if left != nil {
			lost = append(lost, Lost{kept.Ref, r.Ref, left})
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(all)) {
		u := all[cluster]
		list := List{Cluster: cluster, Addresses: model.ListOf(u.list...)}
		for address, standing := range u.have {
			if _, single := ip.Single(address); single && standing.Source != first.Source {
				if list.brought == nil {
					list.brought = map[string]owner.Standing{}
				}
				list.brought[address] = standing
			}
		}
		if cluster == home {
			base = list
		} else {
			others = append(others, list)
		}
	}
	return base, others, lost
}
