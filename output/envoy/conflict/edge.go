package conflict

import (
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// atEdge finds the owner of a host at a port of the edge, if it is another service.
func (c report) atEdge(s *catalog.Service, port *policy.EdgePort) []catalog.Conflict {
	alike := c.sameHosts[names.Fold(s.Key.Host)]
	if _, exposed := reach.EdgeMemberOf(port, s.ServiceDefinition); !exposed || len(alike) < 2 {
		return nil
	}
	namespaces := map[string]struct{}{noNamespace: {}}
	for _, other := range alike {
		namespaces[other.Key.Namespace] = struct{}{}
		for to := range other.ExportTo.All() {
			namespaces[to] = struct{}{}
		}
	}
	l := portLosses{first: map[lostThing]reach.Loss{}}
	for namespace := range namespaces {
		v := catalog.Viewer{Namespace: namespace}
		if !c.resolvesTo(v, s.ServiceDefinition) {
			continue
		}
		for _, other := range alike {
			_, exposed := reach.EdgeMemberOf(port, other.ServiceDefinition)
			if exposed && other.Key.Host != s.Key.Host && c.resolvesTo(v, other.ServiceDefinition) && reach.EdgeAsks(port).Owner(namespace, other.ServiceDefinition, s.ServiceDefinition) < 0 {
				l.add(reach.Loss{Loser: s.ServiceDefinition, Winner: other.ServiceDefinition, Kind: reach.LostAtEdge, Name: s.Key.Host}, "")
			}
		}
	}
	for _, loss := range l.first {
		own := reach.EdgeAsks(port).Owner("", loss.Winner, s.ServiceDefinition) > 0
		return []catalog.Conflict{conflictOf(loss, port.Port(), []string{loss.Name}, own)}
	}
	return nil
}

// resolvesTo reports whether the host of a service resolves to it for a viewer.
func (c report) resolvesTo(v catalog.Viewer, s catalog.ServiceDefinition) bool {
	is, found := c.now.Resolve(v, s.Key.Host)
	return found && is.Key == s.Key
}

// sameHosts returns the services with hosts that differ from another host only in case, by their
// hosts in lower case.
func sameHosts(now *catalog.Snapshot) map[string][]*catalog.Service {
	all := map[string][]*catalog.Service{}
	for s := range now.Services() {
		key := names.Fold(s.Key.Host)
		all[key] = append(all[key], s)
	}
	for key, services := range all {
		if len(services) == 1 {
			delete(all, key)
		}
	}
	return all
}
