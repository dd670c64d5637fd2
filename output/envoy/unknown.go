package envoy

import (
	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// unknown is the cluster of connections that belong to no service.
func (v View) unknown() string {
	if blocks(v.settings) {
		return blackHoleCluster
	}
	return passthroughCluster
}

// blocks reports whether only services are reached.
func blocks(s *policy.Prepared) bool { return s != nil && s.RegistryOnly }

// otherHosts is for requests to whatever no service stands for: they go where they were
// going, or are answered that there is no such thing.
func otherHosts(s *policy.Prepared) *routev3.VirtualHost {
	if blocks(s) {
		const name, badGateway = "block_all", 502
		answer := &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: badGateway}}
		return &routev3.VirtualHost{
			Name: name, Domains: []string{anyDomain}, IncludeRequestAttemptCount: true,
			Routes: []*routev3.Route{inBlocks(), {Name: name, Match: anyPath(), Action: answer}},
		}
	}
	action := unlimitedTime(toCluster(passthroughCluster))
	return &routev3.VirtualHost{
		Name: "allow_any", Domains: []string{anyDomain}, IncludeRequestAttemptCount: true,
		Routes: []*routev3.Route{inBlocks(), {Name: "allow_any", Match: anyPath(), Action: &routev3.Route_Route{Route: action}}},
	}
}

// blockHeader is in requests to a block of addresses, from the listener until they are routed:
// the cluster of requests that name no service. A listener that leads to blocks sets it.
const blockHeader = "x-isthmus-block-cluster"

// unnamedTo leads the requests of a listener's chain that name no service to a cluster.
func unnamedTo(cluster string) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{
		Name: "envoy.http.early_header_mutation.header_mutation",
		TypedConfig: packed(&headermutationv3.HeaderMutation{Mutations: []*mutationrulesv3.HeaderMutation{{
			Action: &mutationrulesv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
				Header: &corev3.HeaderValue{Key: blockHeader, Value: cluster}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			}},
		}}}),
	}
}

// inBlocks is the route of requests to a block of addresses that name no service. Only
// clusters of services may be in the header, for a workload could write it as well.
func inBlocks() *routev3.Route {
	match := anyPath()
	service := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: outbound}}
	match.Headers = []*routev3.HeaderMatcher{{Name: blockHeader, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: service}}}
	action := unlimitedTime(&routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: blockHeader}})
	return &routev3.Route{Name: "block", Match: match, Action: &routev3.Route_Route{Route: action}, RequestHeadersToRemove: []string{blockHeader}}
}

// unlimitedTime switches off the limits that Envoy has if nothing is said.
func unlimitedTime(a *routev3.RouteAction) *routev3.RouteAction {
	a.Timeout = durationpb.New(0)
	a.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{
		MaxStreamDuration: durationpb.New(0), GrpcTimeoutHeaderMax: durationpb.New(0),
	}
	return a
}
