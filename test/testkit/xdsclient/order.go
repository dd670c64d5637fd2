package xdsclient

import "slices"

// sentCluster notes that the load assignment of a cluster has to follow, if
// the client has asked for it, and may follow in any case.
func (c *Client) sentCluster(cluster Resource, changed bool) {
	assignments := c.state.topic(EDS)
	if !cluster.WantsAssignment() {
		delete(assignments.check.owed, cluster.Name) // it did, and is another by now
		return
	}
	if !assignments.asked || !assignments.covers(cluster.Name) {
		return
	}
	assignments.check.joined[cluster.Name] = true
	if held, has := c.state.topic(CDS).held[cluster.Name]; changed && (!has || held.digest != cluster.digest) {
		assignments.check.owed[cluster.Name] = true
	}
}

// cameBefore notes that a load assignment, which the client holds and asks for,
// has to follow its cluster all the same if this stream brought that already.
func (c *Client) cameBefore(assignments *topic, name string) {
	clusters := c.state.topic(CDS)
	if cluster, has := clusters.held[name]; has && cluster.WantsAssignment() && clusters.check.confirmed[name] {
		assignments.check.joined[name], assignments.check.owed[name] = true, true
	}
}

func (c *Client) clusterGone(k *topic, name string) {
	if k.url == CDS {
		delete(c.state.topic(EDS).check.owed, name)
	}
}

// ordered checks that a response does not come before what it refers to, nor
// removes what is still referred to.
func (c *Client) ordered(k *topic, r response) {
	if c.config.Overlap {
		return // past its patience a server does not wait
	}
	switch k.url {
	case RDS:
		for _, res := range r.resources {
			c.afterItsClusters(k, res)
		}
	case CDS:
		for _, name := range r.removed {
			if k.check.confirmed[name] {
				c.afterWhatLeadsTo(name)
			}
		}
		for name := range k.held {
			if r.full && k.covers(name) && k.check.confirmed[name] && !slices.ContainsFunc(r.resources, func(res Resource) bool { return res.Name == name }) {
				c.afterWhatLeadsTo(name)
			}
		}
	}
}

// afterItsClusters checks that a route which is new to the client does not
// lead to a cluster that it asked for earlier and has not accepted.
func (c *Client) afterItsClusters(routes *topic, route Resource) {
	if _, had := routes.check.sent[route.Name]; had {
		return
	}
	clusters := c.state.topic(CDS)
	if clusters.first && clusters.acked != "" && !c.dialect.delta() {
		return // it said that it has a full set, and is left with that until every source has been listed
	}
	asked, ok := routes.coveredSince(route.Name)
	for _, name := range route.ClusterNames() {
		since, covered := clusters.coveredSince(name)
		if _, held := clusters.held[name]; ok && covered && clusters.asked && since < asked && !held {
			c.violation("the route %s came before its cluster %s was accepted", route.Name, name)
		}
	}
}

// afterWhatLeadsTo checks that nothing the client was sent on this stream still
// leads to a cluster that is removed.
func (c *Client) afterWhatLeadsTo(cluster string) {
	for _, listener := range c.state.topic(LDS).held {
		if listener.RouteName() == cluster && c.state.topic(LDS).check.stands(listener.Name) {
			c.violation("the cluster %s went before the listener %s that leads to it", cluster, listener.Name)
		}
	}
	if !c.dialect.delta() {
		return // a route cannot be removed
	}
	for _, route := range c.state.topic(RDS).held {
		if slices.Contains(route.ClusterNames(), cluster) && c.state.topic(RDS).check.stands(route.Name) {
			c.violation("the cluster %s went before the route %s that leads to it", cluster, route.Name)
		}
	}
}

// stands reports whether the client holds a resource because this stream
// brought it, and no NACK makes it uncertain.
func (c *check) stands(name string) bool { return c.confirmed[name] && len(c.unresolved) == 0 }
