package envoy

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// claimants are the services that ask for one thing, by who can see them. They come by who
// owns the thing for workloads of no namespace.
type claimants struct {
	by          catalog.Asked
	means       func(catalog.Viewer, catalog.ServiceDefinition) bool // by its host
	special     func(host string) []string                           // namespaces for which it may mean another service
	everywhere  []catalog.ServiceDefinition
	byNamespace map[string][]catalog.ServiceDefinition
}

// seenFrom lists the namespaces that see a service; none for all.
func seenFrom(s catalog.ServiceDefinition) (list []string, all bool) {
	for to := range s.ExportTo.All() {
		switch to {
		case "*":
			return nil, true
		case "~":
		case ".":
			list = append(list, s.Key.Namespace)
		default:
			list = append(list, to)
		}
	}
	return list, s.ExportTo.Len() == 0
}

// askedBy lists the namespaces that see a service, of which one alone may know it by
// what it asks for.
func askedBy(s catalog.ServiceDefinition, only string) (list []string, all bool) {
	list, all = seenFrom(s)
	switch {
	case only == "":
		return list, all
	case all || slices.Contains(list, only):
		return []string{only}, false
	default:
		return nil, false
	}
}

func (c *claimants) add(s catalog.ServiceDefinition, only string) {
	namespaces, all := askedBy(s, only)
	if all {
		c.everywhere = append(c.everywhere, s)
		return
	}
	if c.byNamespace == nil {
		c.byNamespace = map[string][]catalog.ServiceDefinition{}
	}
	for _, namespace := range namespaces {
		c.byNamespace[namespace] = append(c.byNamespace[namespace], s)
	}
}

func (c *claimants) compare(a, b catalog.ServiceDefinition) int { return c.by.Owner("", a, b) }

// winner is the first service that has what another asks for, for some viewer that
// sees both.
func (c *claimants) winner(s catalog.ServiceDefinition, w want) (best catalog.ServiceDefinition, found bool) {
	consider := func(candidates []catalog.ServiceDefinition, namespace string) {
		candidate, ok := c.first(candidates, s, namespace, w.yields)
		if ok && (!found || c.compare(candidate, best) < 0) {
			best, found = candidate, true
		}
	}
	namespaces, all := askedBy(s, w.only)
	if all {
		consider(c.everywhere, "")
		for namespace, services := range c.byNamespace {
			consider(services, namespace)
		}
	}
	for _, namespace := range namespaces {
		consider(c.everywhere, namespace)
		consider(c.byNamespace[namespace], namespace)
	}
	return best, found
}

// haveAll reports whether every viewer that sees a service sees one of its rivals, too.
// Some namespaces see another service in place of a rival, since it has the same host.
func (c *claimants) haveAll(s catalog.ServiceDefinition) bool {
	namespaces, all := seenFrom(s)
	if all {
		rival, found := c.first(c.everywhere, s, nobody, false)
		if !found {
			return false
		}
		namespaces = slices.Concat(c.special(s.Key.Host), c.special(rival.Key.Host))
	}
	return !slices.ContainsFunc(namespaces, func(n string) bool {
		if !c.means(catalog.Viewer{Namespace: n}, s) {
			return false
		}
		_, found := c.first(c.everywhere, s, n, false)
		if !found {
			_, found = c.first(c.byNamespace[n], s, n, false)
		}
		return !found
	})
}

// nobody is a namespace without services, that none is exported to by its name.
const nobody = "\x00"

// first is the first of some services that a viewer of a namespace sees beside another
// one, and for which it is the owner, unless the other yields to all; of any namespace, if
// it is empty.
func (c *claimants) first(services []catalog.ServiceDefinition, beside catalog.ServiceDefinition, namespace string, yields bool) (catalog.ServiceDefinition, bool) {
	for _, s := range services {
		viewers := []string{namespace}
		if namespace == "" {
			viewers = append(viewers, beside.Key.Namespace, s.Key.Namespace)
		}
		// Of one host a viewer sees one.
		if s.Key.Host != beside.Key.Host && slices.ContainsFunc(viewers, func(n string) bool {
			return (yields || c.by.Owner(n, s, beside) < 0) && c.bothSeen(s, beside, n)
		}) {
			return s, true
		}
	}
	return catalog.ServiceDefinition{}, false
}

func (c *claimants) bothSeen(a, b catalog.ServiceDefinition, namespace string) bool {
	v := catalog.Viewer{Namespace: namespace}
	return c.means(v, a) && c.means(v, b)
}
