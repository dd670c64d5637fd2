package envoy

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// route leads every call of a gRPC client to the cluster of its own name.
type route struct {
	slot
	policy *policy.Policy
}

// Refers implements [push.Referrer].
func (r route) Refers(to string) iter.Seq[string] {
	if to == wire.ClusterURL {
		return one(r.clusterName())
	}
	return nothing
}

// Encode implements [push.Subject].
func (r route) Encode() push.Encoded {
	name := r.clusterName()
	return encode(name, wire.RouteURL, wire.GRPCRoutes(name, r.key.Host, r.port, wire.Target{Cluster: name, Policy: r.policy}))
}
