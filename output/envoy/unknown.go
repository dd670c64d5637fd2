package envoy

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/isthmus-mesh/isthmus/push"
)

// unknown is the cluster of connections that belong to no service.
func (v View) unknown() string {
	if v.settings.blocks() {
		return blackHoleCluster
	}
	return passthroughCluster
}

// blocks reports whether only services are reached.
func (s *settings) blocks() bool { return s != nil && s.registry }

// otherHosts is for requests to whatever no service stands for: they go where they were
// going, or are answered that there is no such thing.
func (s *settings) otherHosts() *routev3.VirtualHost {
	if s.blocks() {
		const name, badGateway = "block_all", 502
		answer := &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: badGateway}}
		return &routev3.VirtualHost{
			Name: name, Domains: []string{"*"}, IncludeRequestAttemptCount: true,
			Routes: []*routev3.Route{{Name: name, Match: anyPath(), Action: answer}},
		}
	}
	action := unlimitedTime(toCluster(passthroughCluster))
	return &routev3.VirtualHost{
		Name: "allow_any", Domains: []string{"*"}, IncludeRequestAttemptCount: true,
		Routes: []*routev3.Route{{Name: "allow_any", Match: anyPath(), Action: &routev3.Route_Route{Route: action}}},
	}
}

// unlimitedTime switches off the limits that Envoy has if nothing is said.
func unlimitedTime(a *routev3.RouteAction) *routev3.RouteAction {
	a.Timeout = durationpb.New(0)
	a.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{
		MaxStreamDuration: durationpb.New(0), GrpcTimeoutHeaderMax: durationpb.New(0),
	}
	return a
}

// Types is [Types] as the settings have it.
func (s *Settings) Types(debounce func(typeName string, m push.Mode) push.Debounce) []push.TypeSpec {
	specs, prepared := Types(debounce), s.prepare()
	specs[RouteType].Void = prepared.voidRoutes
	return specs
}
