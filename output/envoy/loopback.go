package envoy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// At sidecars with INTERCEPTION_MODE NONE all services of a port share one listener on
// loopback. Connections to it do not say which address they were meant for, so one service
// has all that carry neither requests nor handshakes.

// LoopbackConflicts is [Settings.Conflicts] for sidecars with INTERCEPTION_MODE NONE.
func (s *Settings) LoopbackConflicts(ctx context.Context, now *catalog.Snapshot) func(*catalog.Service) []catalog.Conflict {
	return func(service *catalog.Service) (list []catalog.Conflict) {
		for _, port := range service.Ports {
			index := now.Port(port.Number)
			if ctx.Err() != nil || index == nil || !(proxy{mode: none}).opens(port.Number) {
				continue
			}
			found, _ := index.Derive(loopbackKey{}, func(catalog.PortChange) any { return loopbackConflictsAt(index) }).(map[catalog.ServiceKey]catalog.Conflict)
			if one, lost := found[service.Key]; lost {
				list = append(list, one)
			}
		}
		return list
	}
}

// loopbackKey is the key of the conflicts that are kept with the index of a port.
type loopbackKey struct{}

const (
	loopbackTaken  = "sidecars with INTERCEPTION_MODE NONE lead all connections to port %d of loopback to %s of namespace %s wherever both are seen, and none to %s; give one of the two another port"
	loopbackRead   = "sidecars with INTERCEPTION_MODE NONE read connections to port %d of loopback, to find those of %s of namespace %s wherever both are seen, so none go to %s, whose server may speak first; give one of the two another port"
	loopbackUnread = "sidecars with INTERCEPTION_MODE NONE do not read connections to port %d of loopback, since the server of %s of namespace %s may speak first wherever both are seen, so none go to %s; give one of the two another port"
)

// loopbackConflictsAt finds the services of a port without a place on the listener of some
// namespace. They follow from the layouts of the listeners.
func loopbackConflictsAt(index *catalog.PortServices) map[catalog.ServiceKey]catalog.Conflict {
	services := reachedAt(index)
	lost := map[catalog.ServiceKey]catalog.Conflict{}
	for _, namespace := range loopbackViewers(services) {
		v := catalog.Viewer{Namespace: namespace}
		var seen []catalog.ServiceDefinition
		for _, s := range services {
			if index.Means(v, s) {
				seen = append(seen, s)
			}
		}
		l := layoutOf(seen, index.Number, true, View{Namespace: namespace, proxy: proxy{mode: none}})
		for _, s := range seen {
			if _, known := lost[s.Key]; known {
				continue
			}
			if one, found := l.turnedAway(s, seen, index.Number); found {
				lost[s.Key] = one
			}
		}
	}
	return lost
}

// loopbackViewers are the namespaces in which listeners may differ, and first one that sees
// what all of them see.
func loopbackViewers(services []catalog.ServiceDefinition) []string {
	some := map[string]struct{}{}
	for _, s := range services {
		for to := range s.ExportTo.All() {
			switch to {
			case "*", "~": // no namespace
			case ".":
				some[s.Key.Namespace] = struct{}{}
			default:
				some[to] = struct{}{}
			}
		}
		some[s.Key.Namespace] = struct{}{} // of two services of one host it sees its own
	}
	return append([]string{"\x00"}, slices.Sorted(maps.Keys(some))...)
}

// turnedAway returns the conflict of a service that lacks connections on a listener of
// loopback. Seen are all services there, in the order of ownership.
func (l layout) turnedAway(s catalog.ServiceDefinition, seen []catalog.ServiceDefinition, number uint32) (one catalog.Conflict, found bool) {
	port, _ := s.Port(number)
	kind := trafficOf(port)
	var has func(catalog.ServiceDefinition) bool
	field, reason := "protocol", ""
	switch {
	case speaksFirst(port) && l.inspects():
		reason = loopbackRead
		has = func(other catalog.ServiceDefinition) bool {
			p, _ := other.Port(number)
			return trafficOf(p) != tcpOnly
		}
	case (kind == tcpOnly || kind == sniffed && !l.quiet) && l.other != ClusterName(s.Key.Host, number):
		field, reason = "addresses", loopbackTaken
	case kind != tcpOnly && l.quiet:
		reason = loopbackUnread
	default:
		return one, false
	}
	if has == nil {
		has = func(other catalog.ServiceDefinition) bool { return l.other == ClusterName(other.Key.Host, number) }
	}
	at := slices.IndexFunc(seen, has)
	if at < 0 {
		return one, false
	}
	owner := seen[at]
	return catalog.Conflict{
		Field: fmt.Sprintf("ports[%d].%s", number, field), Kept: owner.Records[0].Record, Lost: s.Records[0].Record,
		Reason: fmt.Sprintf(reason, number, owner.Key.Host, owner.Key.Namespace, s.Key.Host),
	}, true
}
