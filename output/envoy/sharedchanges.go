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
	noted := audiences{}
	single, common := newSingleChanges(s, now, noted), s.sharedByAll()
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
				noted.add(name, namespaces)
			}
			continue
		}
		for name := range sharedNames(now, key.Host, service) {
			noted.add(name, namespaces)
		}
		for _, name := range common {
			noted.add(name, namespaces)
		}
		single.take(key.Host, service, namespaces)
	}
	single.crossed()
	for _, name := range slices.SortedFunc(maps.Keys(noted), func(a, b sharedName) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.name, b.name))
	}) {
		// A single host goes from a route configuration that stays, and does not wait for
		// that one: another host may have its domains at once.
		list = append(list, push.Changed{Row: name.row, Name: name.name, Audience: noted.of(name), Revoked: name.row == VirtualHostType})
	}
	return list
}

// audiences are the namespaces that a name concerns, nil for all. As many services may
// have a part in it as there are namespaces, each for its own.
type audiences map[sharedName]map[string]struct{}

// add adds namespaces to those that a name concerns; nil stands for all.
func (a audiences) add(name sharedName, namespaces []string) {
	set, known := a[name]
	switch {
	case namespaces == nil:
		a[name] = nil
		return
	case !known:
		set = make(map[string]struct{}, len(namespaces))
		a[name] = set
	case set == nil:
		return
	}
	for _, ns := range namespaces {
		set[ns] = struct{}{}
	}
}

// of lists those that a name concerns, in order; nil for all.
func (a audiences) of(name sharedName) []string {
	set := a[name]
	if set == nil {
		return nil
	}
	list := slices.AppendSeq(make([]string, 0, len(set)), maps.Keys(set))
	slices.Sort(list)
	return list
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
