// Package clusters counts the services that decide whether clients of different clusters see different addresses.
package clusters

import (
	"iter"
	"maps"
	"slices"
)

// Counts are numbers of services. They are immutable.
type Counts struct {
	services map[string]int // number of services with addresses in a cluster, by cluster
	split    int            // services with addresses in a cluster beside the first record's
	partly   int            // number of split services that are headless in other clusters
}

// Edit begins a change: the counts that it returns may be changed.
func (c Counts) Edit() Counts {
	services := map[string]int{}
	maps.Copy(services, c.services)
	return Counts{services, c.split, c.partly}
}

// Count counts a service that comes or goes. Within are the clusters in which it has addresses, beside the addresses of the
// first record if it is split.
func (c *Counts) Count(within iter.Seq[string], split, headless bool, by int) {
	for cluster := range within {
		if c.services[cluster] += by; c.services[cluster] == 0 {
			delete(c.services, cluster)
		}
	}
	if split {
		c.split += by
	}
	if split && headless {
		c.partly += by
	}
}

// Differ reports whether the cluster of any client matters.
func (c Counts) Differ() bool { return c.split > 0 || len(c.services) > 1 }

// Matters reports whether the cluster of a client matters, which says that it is in this one.
func (c Counts) Matters(cluster string) bool {
	_, known := c.services[cluster]
	return known && c.Differ()
}

// PartlyHeadless reports whether some service is headless to clients of some clusters alone.
func (c Counts) PartlyHeadless() bool { return c.partly > 0 }

// List returns the clusters, or none if no client's matters.
func (c Counts) List() []string {
	if !c.Differ() {
		return nil
	}
	return slices.Sorted(maps.Keys(c.services))
}
