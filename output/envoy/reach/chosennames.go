package reach

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// ChosenListeners lists the addresses of the listeners at the instances of a port's services, with
// the port of each.
func ChosenListeners(c Client, now *catalog.Snapshot, index *catalog.PortServices) (list []catalog.EndpointID) {
	for s := range index.Visible(c.Viewer) {
		if port, _ := s.Port(index.Number); !ListensAtChosen(c, s, port) || !IsAdmitted(c, index, s.Key) {
			continue
		}
		service, _ := now.Service(s.Key)
		for address, e := range instancesOf(service, index.Number) {
			// An instance of several services is listed with the one that has it.
			if found, ok := ChosenAt(c, now, address, e.Port); ok && found.Key == s.Key && found.Port.Number == index.Number {
				list = append(list, catalog.EndpointID{ServicePort: index.Number, Address: address, Port: e.Port})
			}
		}
	}
	slices.SortFunc(list, func(a, b catalog.EndpointID) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(list)
}

// ChangedInstances yields the names of the listeners that a change of endpoints may add, remove or
// lead to another cluster: the listeners of endpoints that come, go, or get other labels.
func ChangedInstances(settings *policy.Prepared, now *catalog.Snapshot, c catalog.ServiceChange) iter.Seq[string] {
	return func(yield func(string) bool) {
		for id := range c.Endpoints {
			if !c.New.ChosenAt("", id.ServicePort) {
				continue
			}
			port, _ := c.New.Port(id.ServicePort)
			was, had := c.Old.Endpoints(id.ServicePort).Get(id)
			is, has := c.New.Endpoints(id.ServicePort).Get(id)
			if had && has && !SharesSockets(c, id.ServicePort) && was.Also.Equal(is.Also) && (settings.Mesh == nil || was.Labels.Equal(is.Labels)) {
				continue
			}
			for _, e := range []catalog.Endpoint{was, is} {
				for at := range e.Connectable() {
					concerned := mayListen(settings, c.New, port) || TrafficOf(port) == HTTP && mayListenAt(settings, now, at, id.Port)
					if concerned && !yield(names.Socket(at, id.Port)) {
						return
					}
				}
			}
		}
		for _, port := range c.New.Ports { // a new order of sources changes no endpoint
			if c.Old.Endpoints(port.Number) == c.New.Endpoints(port.Number) || !SharesSockets(c, port.Number) || !mayListen(settings, c.New, port) {
				continue
			}
			for at, e := range instancesOf(c.New, port.Number) {
				if !yield(names.Socket(at, e.Port)) {
					return
				}
			}
		}
	}
}

// Instances yields the names of the listeners that a change of a service's definition may add or
// remove. A port of requests has no listener at an instance, but decides whether another service
// has one there.
func Instances(settings *policy.Prepared, now *catalog.Snapshot, s *catalog.Service) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, port := range s.Ports {
			requests := TrafficOf(port) == HTTP && now.HasInstances()
			if !requests && !mayListen(settings, s, port) {
				continue
			}
			for address, e := range instancesOf(s, port.Number) {
				concerned := !requests || mayListenAt(settings, now, address, e.Port)
				if concerned && !yield(names.Socket(address, e.Port)) {
					return
				}
			}
		}
	}
}

// CrowdedInstances yields the services of a crowded port that may have listeners at instances, with
// the names of the listeners: after a change other services may have listeners than before.
func CrowdedInstances(settings *policy.Prepared, now *catalog.Snapshot, number uint32) iter.Seq2[catalog.ServiceKey, iter.Seq[string]] {
	return func(yield func(catalog.ServiceKey, iter.Seq[string]) bool) {
		for of := range now.Port(number).All() {
			s, _ := now.Service(of.Key)
			if port, ok := of.Port(number); !ok || !mayListen(settings, s, port) {
				continue
			}
			all := func(yield func(string) bool) {
				for address, e := range instancesOf(s, number) {
					if !yield(names.Socket(address, e.Port)) {
						return
					}
				}
			}
			if !yield(of.Key, all) {
				return
			}
		}
	}
}

// instancesOf yields the addresses of the endpoints of a port that clients choose among. One may come
// twice.
func instancesOf(s *catalog.Service, number uint32) iter.Seq2[string, catalog.Endpoint] {
	return func(yield func(string, catalog.Endpoint) bool) {
		if !s.ChosenAt("", number) {
			return
		}
		for e := range s.Endpoints(number).All() {
			for address := range e.Connectable() {
				if !yield(address, e) {
					return
				}
			}
		}
	}
}

// mayListen reports whether some Envoy listens at instances of a service port.
func mayListen(s *policy.Prepared, of *catalog.Service, port model.Port) bool {
	return ListensAtChosen(Client{Proxy: node.Proxy{Role: node.Sidecar}, Settings: s}, of.ServiceDefinition, port)
}

// mayListenAt reports whether an instance is one of a service at which some Envoy listens.
func mayListenAt(s *policy.Prepared, now *catalog.Snapshot, address string, number uint32) bool {
	for at := range now.InstancesAt(address, number) {
		if service, ok := now.Service(at.Key); ok && mayListen(s, service, at.Port) {
			return true
		}
	}
	return false
}
