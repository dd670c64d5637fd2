package catalog

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/addresses"
	"github.com/isthmus-mesh/isthmus/catalog/clusters"
	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/model"
)

// ClusterAddresses are the addresses that a service has in one cluster.
type ClusterAddresses = addresses.List

// AddressesIn returns the addresses at which clients of a cluster call a service: its
// addresses there, or otherwise the first record's. Clients of no cluster use the latter.
// foreign reports that they are of another cluster, where other services may have the same
// addresses. A cluster-local service has no addresses for clients of other clusters. If it
// is in several clusters, it has none for clients of no cluster.
func (d *Definition) AddressesIn(cluster string) (list model.List[string], foreign bool) {
	of, foreign := d.listIn(cluster)
	return of.Addresses, foreign
}

// StandingAt returns the standing of the record that has a single address, for clients of a cluster.
func (d *Definition) StandingAt(cluster, address string) Standing {
	of, _ := d.listIn(cluster)
	if s, own := of.Standing(address); own {
		return s
	}
	return d.Standing
}

func (d *Definition) listIn(cluster string) (list ClusterAddresses, foreign bool) {
	for _, c := range d.ByCluster {
		if c.Cluster == cluster {
			return c, false
		}
	}
	foreign = cluster != "" && d.Base.Cluster != "" && d.Base.Cluster != cluster
	if d.Traffic.ClusterLocal && (foreign || cluster == "" && len(d.ByCluster) > 0) {
		return list, false
	}
	return d.Base, foreign
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
	return list.Contains(address), foreign
}

// SameAddresses reports whether both have the same addresses in every cluster, with the same standing.
func (d *Definition) SameAddresses(o *Definition) bool {
	return d.Base.Equal(o.Base) && slices.EqualFunc(d.ByCluster, o.ByCluster, ClusterAddresses.Equal)
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
		for i := -1; i < len(d.ByCluster); i++ {
			list := &d.Base
			if i >= 0 {
				list = &d.ByCluster[i]
			}
			for address := range ip.Singles(list.Addresses.All()) {
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
	if d.Base.Cluster != "" && !yield(d.Base.Cluster) {
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

// Headless reports whether clients choose an endpoint by its address, because the service
// has no address of its own. Clients of clusters in which it has one are excepted.
func (d *Definition) Headless() bool { return d.HeadlessIn("") }

// HeadlessIn reports whether clients of a cluster choose an endpoint by its address.
func (d *Definition) HeadlessIn(cluster string) bool {
	return d.Traffic.Headless && slices.ContainsFunc(d.Ports, func(p model.Port) bool { return d.ChosenAt(cluster, p.Number) })
}
