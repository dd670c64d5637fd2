package envoy

import (
	"iter"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/push"
)

// route leads every call of a gRPC client to the cluster of its own name.
type route struct {
	slot
	policy *policy.Policy
}

// Refers implements [push.Referrer].
func (r route) Refers(to string) iter.Seq[string] {
	if to == clusterURL {
		return one(r.clusterName())
	}
	return nothing
}

// Encode implements [push.Subject].
func (r route) Encode() push.Encoded {
	action, name, authority := toCluster(r.clusterName()), r.clusterName(), ListenerName(r.key.Host, r.port)
	action.RetryPolicy = grpcRetryPolicy(r.policy)
	return encode(name, routeURL, &routev3.RouteConfiguration{
		Name: name,
		VirtualHosts: []*routev3.VirtualHost{{
			Name: authority,
			// A client's authority carries the port it dialled, unless it was
			// set by hand.
			Domains: []string{authority, r.key.Host},
			Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
				Action: &routev3.Route_Route{Route: action},
			}},
		}},
	})
}

func toCluster(name string) *routev3.RouteAction {
	return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: name}}
}
