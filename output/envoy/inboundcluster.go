package envoy

import (
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/push"
)

// inboundPassthrough is the cluster of connections to ports of the workload that no
// service is known to have.
const inboundPassthrough = "InboundPassthroughCluster"

// Addresses that an Envoy calls its workload from. The rules that redirect connections
// let those from them pass, so that they do not come back to the Envoy.
const (
	sourceIPv4 = "127.0.0.6"
	sourceIPv6 = "::6"
)

// inboundClusterName is Istio's for a port of the workload.
func inboundClusterName(port uint32) string {
	return "inbound|" + strconv.FormatUint(uint64(port), 10) + "||"
}

// inboundClusterNames lists the clusters that lead to an Envoy's own workload.
func inboundClusterNames(v View) (list []string) {
	for b := range v.inbound.binds.served() {
		list = append(list, inboundClusterName(b.port()))
	}
	if !v.inbound.taken {
		return list
	}
	list = append(list, inboundPassthrough)
	for number := range v.inbound.ports.all() {
		list = append(list, inboundClusterName(number))
	}
	return list
}

func findInboundCluster(v View, name string) (push.Subject, bool) {
	for b := range v.inbound.binds.served() {
		if inboundClusterName(b.port()) == name {
			return boundCluster{b.port(), b.to}, true
		}
	}
	if !v.inbound.taken {
		return nil, false
	}
	if name == inboundPassthrough {
		return inboundCluster{0, v.workloadFamily()}, true
	}
	digits, inward := strings.CutPrefix(name, "inbound|")
	digits, named := strings.CutSuffix(digits, "||")
	wanted, ok := parsePort(digits)
	if !inward || !named || !ok {
		return nil, false
	}
	for number := range v.inbound.ports.all() {
		if number == wanted {
			return inboundCluster{number, v.workloadFamily()}, true
		}
	}
	return nil, false
}

// workloadFamily is the family of the addresses of an Envoy's own workload.
func (v View) workloadFamily() family {
	if v.inbound.both {
		return both
	}
	return v.resolver.family
}

// inboundCluster leads to a port of an Envoy's own workload, or with port 0 to any. It
// goes where the connection was going, so that nothing of it ever changes.
type inboundCluster struct {
	port   uint32
	family family
}

// Slot implements [push.Subject].
func (c inboundCluster) Slot() any { return c }

// Encode implements [push.Subject].
func (c inboundCluster) Encode() push.Encoded {
	name := inboundPassthrough
	if c.port != 0 {
		name = inboundClusterName(c.port)
	}
	m := &clusterv3.Cluster{
		Name: name, AltStatName: name + ";", ConnectTimeout: durationpb.New(connectTimeout),
		LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED,
		// What the client speaks with Envoy is what the workload speaks.
		TypedExtensionProtocolOptions: asIsSpoken.options(),
		CircuitBreakers:               noLimits(),
		UpstreamBindConfig:            c.family.bindTo(),
	}
	setType(m, clusterv3.Cluster_ORIGINAL_DST)
	return encode(name, clusterURL, m)
}
