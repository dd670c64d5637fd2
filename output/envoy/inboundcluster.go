package envoy

import (
	"strings"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// Addresses that an Envoy calls its workload from. The rules that redirect connections
// let those from them pass, so that they do not come back to the Envoy.
const (
	sourceIPv4 = "127.0.0.6"
	sourceIPv6 = "::6"
)

// inboundClusterNames lists the clusters that lead to an Envoy's own workload.
func inboundClusterNames(v View) (list []string) {
	for b := range v.inbound.binds.served() {
		list = append(list, names.InboundCluster(b.port()))
	}
	if !v.inbound.taken {
		return list
	}
	list = append(list, names.InboundPassthrough)
	for number := range v.inbound.ports.all() {
		list = append(list, names.InboundCluster(number))
	}
	return list
}

func findInboundCluster(v View, name string) (push.Subject, bool) {
	for b := range v.inbound.binds.served() {
		if names.InboundCluster(b.port()) == name {
			return boundCluster{b.port(), b.to}, true
		}
	}
	if !v.inbound.taken {
		return nil, false
	}
	if name == names.InboundPassthrough {
		return inboundCluster{0, workloadFamily(v)}, true
	}
	digits, inward := strings.CutPrefix(name, "inbound|")
	digits, named := strings.CutSuffix(digits, "||")
	wanted, ok := names.ParsePort(digits)
	if !inward || !named || !ok {
		return nil, false
	}
	for number := range v.inbound.ports.all() {
		if number == wanted {
			return inboundCluster{number, workloadFamily(v)}, true
		}
	}
	return nil, false
}

// workloadFamily is the family of the addresses of an Envoy's own workload.
func workloadFamily(v View) node.Family {
	if v.inbound.both {
		return node.DualStack
	}
	return v.resolver.Family
}

// inboundCluster leads to a port of an Envoy's own workload, or with port 0 to any. It
// goes where the connection was going, so that nothing of it ever changes.
type inboundCluster struct {
	port   uint32
	family node.Family
}

// Slot implements [push.Subject].
func (c inboundCluster) Slot() any { return c }

// Encode implements [push.Subject].
func (c inboundCluster) Encode() push.Encoded {
	m := wire.InboundCluster(c.port, sourcesOf(c.family)...)
	return encode(m.GetName(), wire.ClusterURL, m)
}

// sources lists the addresses that an Envoy calls its workload from, by the family of the
// workload's addresses.
func sourcesOf(f node.Family) []string {
	switch f {
	case node.IPv6:
		return []string{sourceIPv6}
	case node.DualStack:
		return []string{sourceIPv4, sourceIPv6}
	default:
		return []string{sourceIPv4}
	}
}
