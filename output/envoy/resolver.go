package envoy

import (
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

func wireFamily(f node.Family) wire.Family {
	switch f {
	case node.IPv4:
		return wire.IPv4
	case node.IPv6:
		return wire.IPv6
	default:
		return wire.AnyFamily
	}
}
