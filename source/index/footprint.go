package index

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/model"
)

// Limits of a service's size in every client. One object of a few kilobytes can
// contain millions of combinations, and each client would be sent all of them.
const (
	// maxCombinations bounds the hosts × addresses × ports of one service object.
	maxCombinations = 10_000
	// maxListeners bounds the listeners that Envoys have for one service object
	// alone: its addresses × its ports that do not carry HTTP.
	maxListeners = 1_000
	// maxPlaces bounds the hosts × ports × endpoints of one service object. As an
	// example, 20,000 endpoints of a service with five ports reach it.
	maxPlaces = 100_000
	// namespaceFactor multiplies the limits of an object for all services that one
	// source lists in a namespace.
	namespaceFactor = 20
)

// Footprint is the size of a service in the configuration of clients.
type Footprint struct {
	combinations int64 // of host, address and port
	listeners    int64 // of Envoys, for this service alone
}

var (
	mostOfObject    = Footprint{maxCombinations, maxListeners}
	mostOfNamespace = Footprint{maxCombinations * namespaceFactor, maxListeners * namespaceFactor}
)

// Plus returns the sum of two footprints.
func (f Footprint) Plus(o Footprint) Footprint {
	return Footprint{f.combinations + o.combinations, f.listeners + o.listeners}
}

// Minus returns the difference of two footprints.
func (f Footprint) Minus(o Footprint) Footprint {
	return Footprint{f.combinations - o.combinations, f.listeners - o.listeners}
}

// Within reports whether no part of a footprint is larger than the same part of another.
func (f Footprint) Within(o Footprint) bool {
	return f.combinations <= o.combinations && f.listeners <= o.listeners
}

// FitsNamespace reports whether a namespace may have a footprint.
func (f Footprint) FitsNamespace() bool { return f.Within(mostOfNamespace) }

// FootprintOf returns the footprint of a service; empty for any other specification.
func FootprintOf(spec model.Spec) Footprint {
	service, ok := spec.(model.Service)
	if !ok {
		return Footprint{}
	}
	hosts, addresses, ports := int64(service.Hosts.Len()), int64(service.Addresses.Len()), int64(service.Ports.Len())
	return Footprint{
		combinations: hosts * max(addresses, 1) * max(ports, 1),
		listeners:    addresses * int64(ownListenerPorts(service)),
	}
}

// ownListenerPorts counts the ports for which Envoys listen at each address of a
// service. HTTP requests of all services share the listeners of their port.
func ownListenerPorts(service model.Service) (n int) {
	for port := range service.Ports.All() {
		if !port.IsHTTP() && !port.IsUDP() {
			n++
		}
	}
	return n
}

// TooLarge returns why a service object exceeds the limits; empty if it does not.
func TooLarge(spec model.Spec) (fault string) {
	f := FootprintOf(spec)
	if f.Within(mostOfObject) {
		return ""
	}
	service, _ := spec.(model.Service)
	hosts, addresses, ports := service.Hosts.Len(), service.Addresses.Len(), service.Ports.Len()
	if f.combinations > maxCombinations {
		return fmt.Sprintf("it has %d hosts × %d addresses × %d ports = %d combinations, and an object may have at most %d: split it into several objects",
			hosts, addresses, ports, f.combinations, maxCombinations)
	}
	return fmt.Sprintf("its %d addresses × %d ports that are not HTTP = %d listeners in every Envoy, and an object may have at most %d: split it into several objects",
		addresses, ownListenerPorts(service), f.listeners, maxListeners)
}

// TooManyEndpoints returns why a service object owns too many endpoints; empty if it
// does not. Each is an endpoint of every host at every port.
func TooManyEndpoints(spec model.Spec, owned []model.Record) (fault string) {
	service, ok := spec.(model.Service)
	if !ok {
		return ""
	}
	endpoints := int64(0)
	for i := range owned {
		if owned[i].Kind == model.KindEndpoint {
			endpoints++
		}
	}
	hosts, ports := int64(service.Hosts.Len()), int64(service.Ports.Len())
	if places := hosts * ports * endpoints; places > maxPlaces {
		return fmt.Sprintf("it has %d hosts × %d ports × %d endpoints = %d places, and an object may have at most %d: split it into several objects",
			hosts, ports, endpoints, places, maxPlaces)
	}
	return ""
}

// NoRoom returns why a service object that does not fit into its namespace is rejected. The
// text does not depend on other objects, so that it is stable as long as the object is.
func NoRoom(f Footprint, namespace string) string {
	return fmt.Sprintf("its %d combinations of host, address and port (%d listeners in every Envoy) do not fit into namespace %q: "+
		"all services that a source has there may have %d combinations and %d listeners; remove some, or use another namespace",
		f.combinations, f.listeners, namespace, mostOfNamespace.combinations, mostOfNamespace.listeners)
}
