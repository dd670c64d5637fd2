package compose

import (
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/model"
)

// TakesShares reports whether Istio divides calls between the endpoints of a service with a
// resolution. With others, it uses one endpoint at most.
func TakesShares(r model.Resolution) bool {
	return r == model.ResolutionStatic || r == model.ResolutionDNS
}

// SharesRule returns the DestinationRule with which Istio gives each backend of a split
// exactly its share: ROUND_ROBIN obeys the weights of endpoints, and Istio's default,
// LEAST_REQUEST, obeys them roughly. If the split ignores localities, so does Istio. The rule
// is exported as its service is.
func SharesRule(host string, exportTo []string, ignoresLocality bool) *networking.DestinationRule {
	balancer := &networking.LoadBalancerSettings{
		LbPolicy: &networking.LoadBalancerSettings_Simple{Simple: networking.LoadBalancerSettings_ROUND_ROBIN},
	}
	if ignoresLocality {
		balancer.LocalityLbSetting = &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(false)}
	}
	return &networking.DestinationRule{Host: host, ExportTo: exportTo, TrafficPolicy: &networking.TrafficPolicy{LoadBalancer: balancer}}
}

// NoSharesRule returns why no DestinationRule can be of this host alone; empty if one can.
func NoSharesRule(host string) string {
	switch {
	case strings.HasPrefix(host, "*"):
		return "a DestinationRule of a wildcard is for other hosts, too; write one yourself if that is right for them"
	case !strings.Contains(host, "."):
		return "Istio completes a host without a dot in a DestinationRule, so none can be for this one; have the source name the service otherwise"
	}
	return ""
}
