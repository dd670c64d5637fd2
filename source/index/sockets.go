package index

import (
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// SocketsOf returns the sockets at which an endpoint serves the ports of a service.
func SocketsOf(service model.Service, e model.Endpoint) map[uint64]bool {
	sockets := map[uint64]bool{}
	if service.Ports.Len() == 0 {
		sockets[source.Socket(e.Address, e.Network, 0)] = true
	}
	for port := range service.Ports.All() {
		at, ok := e.Ports.Get(port.Name)
		if !ok && port.TargetName != "" {
			at, ok = e.Ports.Get(port.TargetName)
		}
		switch {
		case ok:
		case e.Exact, port.TargetName != "":
			continue // the endpoint does not serve this port
		case port.TargetPort != 0:
			at = port.TargetPort
		default:
			at = port.Number
		}
		sockets[source.Socket(e.Address, e.Network, at)] = true
	}
	return sockets
}
