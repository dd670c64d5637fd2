package wire

import (
	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
)

// anyDomain matches requests whose authority no other domain matches.
const anyDomain = "*"

// Routes returns a route configuration of an Envoy without its virtual hosts. With VHDS, it
// takes virtual hosts one by one.
func Routes(name string, vhds bool) *routev3.RouteConfiguration {
	m := &routev3.RouteConfiguration{
		Name: name, ValidateClusters: wrapperspb.Bool(false), IgnorePortInHostMatching: true,
	}
	if vhds {
		m.Vhds = &routev3.Vhds{ConfigSource: fromADS()}
	}
	return m
}

// fieldVirtualHosts is a field of RouteConfiguration.
const fieldVirtualHosts = 2

// Fragment encodes a virtual host as the field of a route configuration. A message may be
// assembled from its encoded fields.
func Fragment(m *routev3.VirtualHost) []byte { return appendMessage(nil, fieldVirtualHosts, m) }

// VirtualHost returns a virtual host that sends requests for some domains to a cluster.
func VirtualHost(name string, domains []string, to Target) *routev3.VirtualHost {
	return &routev3.VirtualHost{
		Name:                       name,
		Domains:                    domains,
		IncludeRequestAttemptCount: true,
		Routes: []*routev3.Route{{
			Name:      "default",
			Match:     anyPath(),
			Decorator: &routev3.Decorator{Operation: name + "/*"},
			Action:    &routev3.Route_Route{Route: to.route()},
		}},
	}
}

func anyPath() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

// route returns the action that sends requests to the target, without a time limit, as
// Istio does.
func (t Target) route() *routev3.RouteAction {
	a := unlimitedTime(routeTo(t.Cluster))
	a.RetryPolicy, a.HashPolicy = retryPolicy(t.Policy), hashPolicy(t.Policy)
	return a
}

func routeTo(cluster string) *routev3.RouteAction {
	return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}
}

// OtherHosts returns the virtual host of requests for hosts of no service. They go to their
// original destination, or are answered with an error if only registered services may be
// called.
func OtherHosts(registryOnly bool) *routev3.VirtualHost {
	if registryOnly {
		const name, badGateway = "block_all", 502
		answer := &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: badGateway}}
		return &routev3.VirtualHost{
			Name: name, Domains: []string{anyDomain}, IncludeRequestAttemptCount: true,
			Routes: []*routev3.Route{inBlocks(), {Name: name, Match: anyPath(), Action: answer}},
		}
	}
	action := unlimitedTime(routeTo(names.Passthrough))
	return &routev3.VirtualHost{
		Name: "allow_any", Domains: []string{anyDomain}, IncludeRequestAttemptCount: true,
		Routes: []*routev3.Route{inBlocks(), {Name: "allow_any", Match: anyPath(), Action: &routev3.Route_Route{Route: action}}},
	}
}

// blockHeader carries the cluster of requests to a block of addresses that name no service,
// from the listener to the route.
const blockHeader = "x-isthmus-block-cluster"

// unnamedTo sends the requests of a chain that name no service to a cluster.
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

// inBlocks returns the route of requests to a block of addresses that name no service. It
// accepts only clusters of services, because a workload may set the header itself.
func inBlocks() *routev3.Route {
	match := anyPath()
	service := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: names.OutboundPrefix}}
	match.Headers = []*routev3.HeaderMatcher{{Name: blockHeader, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: service}}}
	action := unlimitedTime(&routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: blockHeader}})
	return &routev3.Route{Name: "block", Match: match, Action: &routev3.Route_Route{Route: action}, RequestHeadersToRemove: []string{blockHeader}}
}

// unlimitedTime disables Envoy's default time limits.
func unlimitedTime(a *routev3.RouteAction) *routev3.RouteAction {
	a.Timeout = durationpb.New(0)
	a.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{
		MaxStreamDuration: durationpb.New(0), GrpcTimeoutHeaderMax: durationpb.New(0),
	}
	return a
}
