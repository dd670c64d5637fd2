package reach

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Traffic is the protocol that an Envoy expects at a service port.
type Traffic uint8

// The kinds of traffic.
const (
	NotTCP   Traffic = iota // it listens for none
	HTTP                    // requests, chosen by their authority
	TLS                     // a handshake that names the host
	TCP                     // a connection, whatever it carries
	Detected                // requests if it looks like them, else a connection
)

// TrafficOf follows istiod.
func TrafficOf(port model.Port) Traffic {
	switch {
	case port.IsHTTP():
		return HTTP
	case port.IsUDP():
		return NotTCP
	}
	switch port.Protocol {
	case "HTTPS", "TLS":
		return TLS
	case "TCP", "MONGO", "REDIS", "MYSQL", "HBONE":
		return TCP
	}
	if serverFirst(port.Number) {
		return TCP // the client is silent at first: to detect its protocol would take for ever
	}
	return Detected
}

// ServerFirst reports whether the server of a port may speak before its client does. As
// with istiod, such ports are known by a protocol; or by their number, if they have none.
func ServerFirst(port model.Port) bool {
	switch port.Protocol {
	case "MYSQL", "MONGO":
		return true
	}
	return TrafficOf(port) == TCP && port.Protocol == ""
}

// serverFirst reports whether a port is well known for servers that speak first.
func serverFirst(number uint32) bool {
	return slices.Contains(ServerFirstPorts[:], number)
}

// ServerFirstPorts are well-known ports of servers that speak first.
var ServerFirstPorts = [...]uint32{25, 53, 3306, 27017}
