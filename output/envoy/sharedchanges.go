package envoy

import (
	"cmp"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/push"
)

// sharedName is a listener or route configuration that many services may share.
type sharedName struct {
	row  push.Row
	name string
}

// appendShared notes the listeners that lead to services which changed, and the routes
// to them, each once however many services it has. Common are those that any service may
// be part of.
func (s *settings) appendShared(list []push.Changed, now *catalog.Snapshot, c catalog.Change) []push.Changed {
	audiences := map[sharedName][]string{}
	single, common := &singleChanges{s, now, audiences, map[uint32]int{}}, s.sharedByAll()
	for key, service := range c.Services {
		single.count(key.Host, service)
	}
	for key, service := range c.Services {
		namespaces, seen := audience(service.Old, service.New)
		if !seen {
			continue
		}
		if service.Old != nil && service.New != nil && sameOffer(service.Old, service.New) && !service.Resized() {
			for name := range podListeners(service) {
				audiences[name] = unite(audiences, name, namespaces)
			}
			continue
		}
		for name := range sharedNames(now, key.Host, service) {
			audiences[name] = unite(audiences, name, namespaces)
		}
		for _, name := range common {
			audiences[name] = unite(audiences, name, namespaces)
		}
		single.take(key.Host, service, namespaces)
	}
	single.crossed()
	for _, name := range slices.SortedFunc(maps.Keys(audiences), func(a, b sharedName) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.name, b.name))
	}) {
		// A single host goes from a route configuration that stays, and does not wait for
		// that one: another host may have its domains at once.
		list = append(list, push.Changed{Row: name.row, Name: name.name, Audience: audiences[name], Revoked: name.row == VirtualHostType})
	}
	return list
}

// unite adds namespaces to those that a name concerns; nil stands for all.
func unite(audiences map[sharedName][]string, name sharedName, namespaces []string) []string {
	before, known := audiences[name]
	switch {
	case known && before == nil, namespaces == nil:
		return nil
	case !known:
		return namespaces
	}
	all := slices.Concat(before, namespaces)
	slices.Sort(all)
	return slices.Compact(all)
}

// sharedNames are those that may lead to a service of the host, before a change or
// after it.
func sharedNames(now *catalog.Snapshot, host string, c catalog.ServiceChange) map[sharedName]struct{} {
	names := map[sharedName]struct{}{}
	note := func(row push.Row, name string) { names[sharedName{row, name}] = struct{}{} }
	addresses := []string{anyIPv4, anyIPv6, localIPv4, localIPv6}
	add := func(s *catalog.Service) {
		if s != nil {
			addresses = slices.AppendSeq(addresses, s.EveryAddress())
		}
	}
	add(c.Old)
	add(c.New)
	for other := range now.ByHost(host) {
		add(other)
	}
	for name := range allPodListeners(now, host, c) {
		names[name] = struct{}{}
	}
	for _, port := range concernedPorts(now, host, c) {
		note(RouteType, portRoutes(port))
		note(RouteType, ListenerName(host, port))
		for _, address := range addresses {
			note(ListenerType, socketName(address, port))
		}
	}
	return names
}
