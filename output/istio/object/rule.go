package object

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OtherRule is the short form of a DestinationRule of another owner.
type OtherRule struct {
	Ref
	host     string
	balancer Fingerprint
}

// ObserveOther returns the short form of a DestinationRule.
func ObserveOther(u *unstructured.Unstructured) OtherRule {
	host, _, _ := unstructured.NestedString(u.Object, "spec", "host")
	balancer, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "trafficPolicy", "loadBalancer")
	return OtherRule{Ref{DestinationRule, u.GetNamespace(), u.GetName()}, host, FingerprintOf(balancer)}
}

// IsFor reports whether Istio may apply the rule to a host. A wildcard is for all hosts that
// end so, and a host without a dot is in the namespace of the rule.
func (r OtherRule) IsFor(host string) bool {
	if suffix, wildcard := strings.CutPrefix(r.host, "*"); wildcard {
		return strings.HasSuffix(host, suffix)
	}
	return host == r.host || !strings.Contains(r.host, ".") && strings.HasPrefix(host, r.host+"."+r.Namespace+".svc.")
}

// Balances reports whether the rule has the load balancer of another one.
func (r OtherRule) Balances(like *networking.DestinationRule) bool {
	return r.balancer == FingerprintOfMessage(like.GetTrafficPolicy().GetLoadBalancer())
}
