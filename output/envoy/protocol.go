package envoy

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// traffic is what an Envoy takes the bytes of a service port for.
type traffic uint8

const (
	notTCP   traffic = iota // it listens for none
	httpOnly                // requests, chosen by their authority
	tlsOnly                 // a handshake that names the host
	tcpOnly                 // a connection, whatever it carries
	sniffed                 // requests if it looks like them, else a connection
)

// trafficOf follows istiod.
func trafficOf(port model.Port) traffic {
	switch {
	case port.IsHTTP():
		return httpOnly
	case port.IsUDP():
		return notTCP
	}
	switch port.Protocol {
	case "HTTPS", "TLS":
		return tlsOnly
	case "TCP", "MONGO", "REDIS", "MYSQL", "HBONE":
		return tcpOnly
	}
	if serverFirst(port.Number) {
		return tcpOnly // to wait for what the client says would be to wait for ever
	}
	return sniffed
}

// speaksFirst reports whether the server of a port may speak before its client does. As
// with istiod, such ports are known by a protocol; or by their number, if they have none.
func speaksFirst(port model.Port) bool {
	switch port.Protocol {
	case "MYSQL", "MONGO":
		return true
	}
	return trafficOf(port) == tcpOnly && port.Protocol == ""
}

// serverFirst reports whether a port is well known for servers that speak first.
func serverFirst(number uint32) bool {
	return slices.Contains(serverFirstPorts[:], number)
}

var serverFirstPorts = [...]uint32{25, 53, 3306, 27017}
