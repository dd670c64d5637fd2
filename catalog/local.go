package catalog

import (
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/model"
)

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
