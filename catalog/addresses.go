package catalog

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/clusters"
	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/model"
)

// ClusterAddresses are the addresses that a service has in one cluster.
type ClusterAddresses struct {
	Cluster   string
	Addresses model.List[string]
}

func (a ClusterAddresses) equal(o ClusterAddresses) bool {
	return a.Cluster == o.Cluster && a.Addresses.Equal(o.Addresses)
}

// AddressesIn returns the addresses at which clients of a cluster call a service: its
// addresses there, or otherwise the first record's. Clients of no cluster use the latter.
// foreign reports that they are of another cluster, where other services may have the same
// addresses. A cluster-local service has no addresses for clients of other clusters. If it
// is in several clusters, it has none for clients of no cluster.
func (d *Definition) AddressesIn(cluster string) (list model.List[string], foreign bool) {
	for _, c := range d.ByCluster {
		if c.Cluster == cluster {
			return c.Addresses, false
		}
	}
	foreign = cluster != "" && d.AddressedIn != "" && d.AddressedIn != cluster
	if d.Traffic.ClusterLocal && (foreign || cluster == "" && len(d.ByCluster) > 0) {
		return list, false
	}
	return d.Addresses, foreign
}

// ForeignIn reports whether clients of a cluster know a service by addresses of another one.
func (d *Definition) ForeignIn(cluster string) bool {
	_, foreign := d.AddressesIn(cluster)
	return foreign
}

// calledAt reports whether clients of a cluster call a service at one of its addresses.
// foreign reports that they do so only because the service has no address in their own
// cluster.
func (d *Definition) calledAt(cluster, address string) (called, foreign bool) {
	list, foreign := d.AddressesIn(cluster)
	if len(d.ByCluster) == 0 {
		return list.Len() > 0, foreign // the service has only these addresses, and there may be many
	}
	for own := range ip.Singles(list.All()) {
		if own == address {
			return true, foreign
		}
	}
	return false, foreign
}

// SameAddresses reports whether both have the same addresses in every cluster.
func (d *Definition) SameAddresses(o *Definition) bool {
	return d.Addresses.Equal(o.Addresses) && d.AddressedIn == o.AddressedIn &&
		slices.EqualFunc(d.ByCluster, o.ByCluster, ClusterAddresses.equal)
}

// OwnAddressesIn yields the single IP addresses of a service for clients of a cluster, in canonical
// form. It skips blocks of more than one address.
func (d *Definition) OwnAddressesIn(cluster string) iter.Seq[string] {
	list, _ := d.AddressesIn(cluster)
	return ip.Singles(list.All())
}

// EveryAddress yields the single IP addresses for clients of any cluster. Some may come
// more than once.
func (d *Definition) EveryAddress() iter.Seq[string] {
	return func(yield func(string) bool) {
		for address := range ip.Singles(d.Addresses.All()) {
			if !yield(address) {
				return
			}
		}
		for _, c := range d.ByCluster {
			for address := range ip.Singles(c.Addresses.All()) {
				if !yield(address) {
					return
				}
			}
		}
	}
}

// BlocksIn yields the blocks of more than one address, for clients of a cluster.
func (d *Definition) BlocksIn(cluster string) iter.Seq[netip.Prefix] {
	list, _ := d.AddressesIn(cluster)
	return ip.Blocks(list.All())
}

// addressedIn yields the clusters in which a service has addresses.
func (d *Definition) addressedIn(yield func(string) bool) {
	if d.AddressedIn != "" && !yield(d.AddressedIn) {
		return
	}
	for _, c := range d.ByCluster {
		if !yield(c.Cluster) {
			return
		}
	}
}

// countClusters counts the services that changed: the new ones by +1, or to undo the change by -1.
func countClusters(c clusters.Counts, changed map[ServiceKey]ServiceChange, by int) clusters.Counts {
	own := false
	for _, change := range changed {
		if change.Old != nil && change.New != nil && change.Old.Definition == change.New.Definition {
			continue
		}
		if !own { // a change of endpoints alone does not affect the counts
			c, own = c.Edit(), true
		}
		if s := change.Old; s != nil {
			c.Count(s.addressedIn, len(s.ByCluster) > 0, s.Headless(), -by)
		}
		if s := change.New; s != nil {
			c.Count(s.addressedIn, len(s.ByCluster) > 0, s.Headless(), by)
		}
	}
	return c
}

// addressing unites the addresses of a service's records by their clusters.
type addressing struct {
	*Definition
	first *serviceRecord
	by    map[string]*serviceRecord // by cluster, the record with the addresses that count there
}

// addressesOf starts with the addresses of the first record.
func addressesOf(d *Definition, first *serviceRecord) addressing {
	a := addressing{d, first, map[string]*serviceRecord{}}
	d.Addresses = first.spec.Addresses
	if first.spec.Addresses.Len() > 0 && first.spec.Cluster != "" {
		d.AddressedIn = first.spec.Cluster
		a.by[d.AddressedIn] = first
	}
	return a
}

// add enters the addresses of a later record: the first record of a cluster counts there, with the
// other records of its source. It returns the record that counts instead of this one, or this one.
func (a addressing) add(r *serviceRecord) (counts *serviceRecord) {
	cluster := r.spec.Cluster
	first, known := a.by[cluster]
	switch {
	case cluster == "" && a.first.spec.Cluster == "":
		first = a.first
	case cluster == "" || !known && r.spec.Addresses.Len() == 0:
		return a.first
	case !known:
		a.by[cluster] = r
		at, _ := slices.BinarySearchFunc(a.ByCluster, cluster, func(c ClusterAddresses, name string) int { return cmp.Compare(c.Cluster, name) })
		a.ByCluster = slices.Insert(a.ByCluster, at, ClusterAddresses{cluster, r.spec.Addresses})
		return r
	}
	if first.ref.Source != r.ref.Source {
		return first
	}
	for address := range r.spec.Addresses.All() {
		if list := a.in(cluster); !list.Contains(address) {
			*list = model.ListOf(append(list.Slice(), address)...)
		}
	}
	return r
}

// in returns the addresses of a cluster that is known, or of none.
func (a addressing) in(cluster string) *model.List[string] {
	at := slices.IndexFunc(a.ByCluster, func(c ClusterAddresses) bool { return c.Cluster == cluster })
	if at < 0 {
		return &a.Addresses
	}
	return &a.ByCluster[at].Addresses
}

// Headless reports whether clients choose an endpoint by its address, because the service
// has no address of its own. Clients of clusters in which it has one are excepted.
func (d *Definition) Headless() bool { return d.HeadlessIn("") }

// HeadlessIn reports whether clients of a cluster choose an endpoint by its address.
func (d *Definition) HeadlessIn(cluster string) bool {
	return d.Traffic.Headless && d.ChosenIn(cluster)
}
