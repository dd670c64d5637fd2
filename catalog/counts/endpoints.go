package counts

import (
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/model"
)

// Endpoints are numbers of endpoints.
type Endpoints struct {
	Total   int
	Healthy int
	Sockets int // unix sockets, healthy or not
	// Networked counts the endpoints with a network, healthy or not.
	Networked int
	// Shared counts the endpoints beyond the first at an address and port, which several networks have,
	// healthy or not.
	Shared int
	Local  int // at local addresses, healthy or not
}

// Count counts an endpoint at a port of a network that comes or goes. Shared is left to the caller.
func (t *Endpoints) Count(e *model.Endpoint, port uint32, network string, by int) {
	t.Total += by
	if e.Health == model.Healthy {
		t.Healthy += by
	}
	if port == 0 {
		t.Sockets += by
	}
	if network != "" {
		t.Networked += by
	}
	if IsLocal(*e) {
		t.Local += by
	}
}

// IsLocal reports whether an endpoint has an address that means the connecting machine or a
// neighbour on its link, such as 127.0.0.1 or a unix socket.
func IsLocal(e model.Endpoint) bool {
	if loopback.EndpointKind(e.Address) != "" {
		return true
	}
	for address := range e.Also.All() {
		if loopback.EndpointKind(address) != "" {
			return true
		}
	}
	return false
}
