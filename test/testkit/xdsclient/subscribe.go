package xdsclient

import (
	"maps"
	"slices"
	"strings"
)

// Subscribe asks for names of a type; "*" is everything. Without names, a
// first request asks for everything of listeners and clusters, and for nothing
// of other types. The delta variant may ask again for what it has.
func (c *Client) Subscribe(typeURL string, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(c.state.topic(typeURL), names, nil, nil)
}

// Unsubscribe stops asking for names of a type; "*" is everything.
func (c *Client) Unsubscribe(typeURL string, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(c.state.topic(typeURL), nil, names, nil)
}

// change changes the subscription to a type, and may ride on an answer.
func (c *Client) change(k *topic, add, drop []string, a *answer) {
	first := !k.asked
	if first && !slices.Contains(c.order, k.url) {
		c.order = append(c.order, k.url)
	}
	c.add(k, first, add)
	if first && len(add) == 0 && isWhole(k.url) {
		k.star, k.starred = true, c.state.clock
	}
	c.drop(k, drop, a != nil)
	k.named = k.named || len(add) > 0
	m := c.dialect.request(k, add, drop, a)
	k.asked = true
	c.log("-> %s", describeRequest(k, add, drop, a))
	c.send(m)
}

func (c *Client) add(k *topic, first bool, names []string) {
	if implied := k.star && !k.named && !c.dialect.delta(); implied && len(names) > 0 && !slices.Contains(names, "*") {
		c.uncover(k, false, func() { k.star = false }) // to have no names meant everything, which ends with the first
	}
	for _, name := range names {
		if name == "*" {
			if !k.star {
				k.star, k.starred = true, c.state.clock
			}
			continue
		}
		_, named := k.names[name]
		_, resumed := k.held[name]
		if resumed = resumed && first && c.dialect.delta(); !resumed && (!named || c.dialect.delta()) {
			k.check.ask(name, k.covers(name) || k.leaves(name))
		}
		if resumed && k.url == EDS {
			c.cameBefore(k, name)
		}
		if !named {
			delete(k.check.state, name) // it is brought anew
			k.names[name] = c.state.clock
		}
	}
}

func (c *Client) drop(k *topic, names []string, atOnce bool) {
	c.uncover(k, atOnce, func() {
		for _, name := range names {
			_, named := k.names[name]
			switch {
			case name == "*" && !k.named && !c.dialect.delta():
				// There is no way to say so: it is said by naming nothing.
			case name == "*":
				k.star = false
			case named && k.star && c.dialect.delta():
				k.check.ask(name, true) // whether everything has it must be said
			}
			delete(k.names, name)
		}
	})
}

// uncover makes a change after which the client asks for less, and drops what
// it then no longer asks for. Unless the server learns of the change at once,
// with an answer that it waits for, some of it may be on its way.
func (c *Client) uncover(k *topic, atOnce bool, change func()) {
	before, star := maps.Clone(k.names), k.star
	change()
	for name := range before {
		c.leave(k, name, atOnce)
	}
	for name := range maps.Clone(k.held) {
		c.leave(k, name, atOnce)
	}
	for name := range maps.Clone(k.check.sent) {
		c.leave(k, name, atOnce)
	}
	for name := range maps.Clone(k.check.owed) { // which never came
		c.leave(k, name, atOnce)
	}
	if star && !k.star && !atOnce {
		k.leavingAll = true
	}
}

func (c *Client) leave(k *topic, name string, atOnce bool) {
	if k.covers(name) || k.check.sent[name] == claimed { // its removal is still owed
		return
	}
	asked := k.check.asking[name]
	delete(k.held, name)
	k.check.forget(name)
	c.clusterGone(k, name)
	if atOnce && !c.config.Overlap {
		return
	}
	k.leaving[name] = true
	if asked != nil { // the answer may be on its way
		k.check.asking[name] = asked
		asked.fresh = false
	}
}

// left notes that whatever was on its way when it was unsubscribed has come.
func (c *Client) left(k *topic) {
	if c.config.Overlap {
		return
	}
	clear(k.leaving)
	k.leavingAll = false
	for name := range k.check.asking {
		if !k.covers(name) {
			delete(k.check.asking, name)
		}
	}
}

// FollowClusters subscribes to the load assignments of the clusters that a
// client holds, as Envoy does.
func FollowClusters(s *State) map[string][]string {
	var names []string
	for _, cluster := range s.Resources(CDS) {
		if cluster.WantsAssignment() {
			names = append(names, cluster.Name)
		}
	}
	return map[string][]string{EDS: names}
}

// FollowListeners subscribes to all that the listeners of a client lead to, as
// gRPC does.
func FollowListeners(s *State) map[string][]string {
	var routes, clusters []string
	for _, listener := range s.Resources(LDS) {
		if name := listener.RouteName(); name != "" {
			routes = append(routes, name)
		}
	}
	for _, route := range s.Resources(RDS) {
		clusters = append(clusters, route.ClusterNames()...)
	}
	follow := FollowClusters(s)
	follow[RDS], follow[CDS] = routes, clusters
	return follow
}

// follow subscribes to what the client's behaviour makes of what it holds,
// until that leads to nothing more: what is let go of may have been what led to
// something else.
func (c *Client) follow() {
	if c.config.Follow == nil {
		return
	}
	for c.session != nil && c.followOnce() {
	}
}

func (c *Client) followOnce() (changed bool) {
	wanted := c.config.Follow(&c.state)
	for _, url := range slices.Sorted(maps.Keys(wanted)) {
		k := c.state.topic(url)
		var add, drop []string
		for _, name := range wanted[url] {
			if _, named := k.names[name]; !named && !slices.Contains(add, name) {
				add = append(add, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(k.names)) {
			if !slices.Contains(wanted[url], name) {
				drop = append(drop, name)
			}
		}
		if len(add) > 0 || len(drop) > 0 {
			c.change(k, add, drop, nil)
			changed = true
		}
	}
	return changed
}

func describeRequest(k *topic, add, drop []string, a *answer) string {
	words := []string{short(k.url)}
	if a != nil {
		words = append(words, "accepts", a.response.nonce)
		if a.reason != "" {
			words = append(words[:1], "refuses", a.response.nonce, "("+a.reason+")")
		}
	}
	if len(add) > 0 {
		words = append(words, "subscribes", strings.Join(add, " "))
	}
	if len(drop) > 0 {
		words = append(words, "unsubscribes", strings.Join(drop, " "))
	}
	if len(words) == 1 {
		words = append(words, "asks")
	}
	if !k.asked {
		words = append(words, "for the first time")
	}
	return strings.Join(words, " ")
}
