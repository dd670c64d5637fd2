package istio

import "github.com/isthmus-mesh/isthmus/source"

// socketsOf returns a socket of each endpoint of a specification, that of the
// lowest port: endpoints are told apart by it, whatever else is said of them.
func socketsOf(spec any) []uint64 {
	fields, _ := spec.(map[string]any)
	ports, _ := fields["ports"].([]any)
	endpoints := endpointsOf(spec)
	sockets := make([]uint64, 0, len(endpoints))
	for _, endpoint := range endpoints {
		address, _ := endpoint["address"].(string)
		network, _ := endpoint["network"].(string)
		sockets = append(sockets, source.Socket(address, network, lowest(ports, endpoint)))
	}
	return sockets
}

// lowest returns the lowest port that an endpoint listens on.
func lowest(ports []any, endpoint map[string]any) (port uint32) {
	own, _ := endpoint["ports"].(map[string]any)
	for _, p := range ports {
		said, _ := p.(map[string]any)
		name, _ := said["name"].(string)
		at := number(own[name])
		if at == 0 {
			at = number(said["targetPort"])
		}
		if at == 0 {
			at = number(said["number"])
		}
		if port == 0 || at < port {
			port = at
		}
	}
	return port
}

// number is a port as JSON has it; zero if it is none.
func number(v any) uint32 {
	n, ok := v.(int64)
	if !ok || n < 0 || n > 1<<16-1 {
		return 0
	}
	return uint32(n)
}
