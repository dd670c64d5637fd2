package object

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/source"
)

// socketsOf returns a socket of each endpoint of a specification, of its lowest port. It
// identifies the endpoint, regardless of other attributes.
func socketsOf(entry *networking.ServiceEntry) []uint64 {
	sockets := make([]uint64, 0, len(entry.GetEndpoints()))
	for _, e := range entry.GetEndpoints() {
		sockets = append(sockets, source.Socket(e.GetAddress(), e.GetNetwork(), lowest(entry.GetPorts(), e)))
	}
	return sockets
}

// socketOf is the same for the specification of a WorkloadEntry. Without a port its socket
// is unknown: our own list all ports.
func socketOf(e *networking.WorkloadEntry) []uint64 {
	port := uint32(0)
	for _, at := range e.GetPorts() {
		if port == 0 || at < port {
			port = at
		}
	}
	if port == 0 && !strings.HasPrefix(e.GetAddress(), "unix://") {
		return nil
	}
	return []uint64{source.Socket(e.GetAddress(), e.GetNetwork(), port)}
}

// lowest returns the lowest port that an endpoint listens on.
func lowest(ports []*networking.ServicePort, e *networking.WorkloadEntry) (lowest uint32) {
	for _, p := range ports {
		at := e.GetPorts()[p.GetName()]
		if at == 0 {
			at = p.GetTargetPort()
		}
		if at == 0 {
			at = p.GetNumber()
		}
		if lowest == 0 || at < lowest {
			lowest = at
		}
	}
	return lowest
}
