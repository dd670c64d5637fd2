package translate

import (
	"fmt"

	"github.com/isthmus-mesh/isthmus/catalog"
	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/compose"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// Shares is how the shares of splits are written.
type Shares string

// The ways to write shares.
const (
	SharesAsWeights Shares = "weights"          // of endpoints, in ServiceEntry objects
	SharesAsRules   Shares = "destinationRules" // and DestinationRule objects, with which Istio obeys the weights exactly
)

// Validate returns an error if the way is unknown.
func (s Shares) Validate() error {
	switch s {
	case SharesAsWeights, SharesAsRules:
		return nil
	default:
		return fmt.Errorf("shares: %q is none of weights (default), destinationRules", string(s))
	}
}

// RuleKey returns the key of a service's DestinationRule.
func RuleKey(key catalog.ServiceKey) object.Key {
	return object.Key{Kind: object.DestinationRule, Namespace: key.Namespace, Name: key.Host}
}

// HasRule reports whether a service is to have a DestinationRule, if none of another owner is
// for its host.
func HasRule(s *catalog.Service) bool {
	return s != nil && s.Split != nil && compose.TakesShares(s.Resolution) && !s.Traffic.ClusterLocal && compose.Invalid(s) == ""
}

// RuleOf returns the DestinationRule of a service that has one, given those of other owners.
// Istio unites the rules for a host in the namespace of the service, or picks one of them,
// and prefers them to rules in the root namespace. So none is written beside another one.
func RuleOf(c Settings, s *catalog.Service, others []object.OtherRule) (t Translation) {
	if reason := compose.NoSharesRule(s.Written()); reason != "" {
		return Translation{Invalid: reason}
	}
	spec := compose.SharesRule(s.Written(), s.ExportTo.Slice(), s.Split.IgnoresLocality())
	var found, rough object.Ref
	for _, other := range others {
		if other.Namespace != s.Key.Namespace && other.Namespace != c.RootNamespace || !other.IsFor(s.Written()) {
			continue
		}
		found = other.Ref
		if !other.Balances(spec) && (rough == object.Ref{} || other.Compare(rough) < 0) {
			rough = other.Ref
		}
	}
	switch {
	case rough != object.Ref{}:
		return Translation{Other: rough, Invalid: fmt.Sprintf("%s of another owner is for this host, and Istio may apply only one: give it trafficPolicy.loadBalancer: %s, "+
			"or delete it", rough, convert.AppendSpec(nil, spec.GetTrafficPolicy().GetLoadBalancer()))}
	case found != object.Ref{}:
		return t
	}
	o := c.objectOf(convert.Object{Namespace: s.Key.Namespace, Name: compose.NameOf(s.Key.Host), Spec: spec}, s.Sources()...)
	o.Annotations[object.AnnotationService] = s.Key.Host
	t.Objects = append(t.Objects, o)
	return t
}
