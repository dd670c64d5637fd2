package plan

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/translate"
)

// keyOf returns the key of a service's objects with endpoints.
func keyOf(key catalog.ServiceKey) object.Key {
	return object.Key{Kind: object.ServiceEntry, Namespace: key.Namespace, Name: key.Host}
}

// Keys returns every key with a desired or an existing object.
func (p *Planner) Keys(world *catalog.Snapshot) []object.Key {
	all := p.stored.Keys()
	for service := range world.Services() {
		all[keyOf(service.Key)] = struct{}{}
		if p.writesRules() && translate.HasRule(service) {
			all[translate.RuleKey(service.Key)] = struct{}{}
		}
	}
	if p.settings.Sidecars {
		for scope := range world.Scopes() {
			all[translate.ScopeKey(scope)] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b object.Key) int {
		return object.Ref(a).Compare(object.Ref(b))
	})
}

// Concerned returns the keys that a change from one snapshot to the next affects.
func (p *Planner) Concerned(before, s *catalog.Snapshot, c catalog.Change) []object.Key {
	keys := make([]object.Key, 0, len(c.Services))
	for key, change := range c.Services {
		keys = append(keys, keyOf(key))
		if p.writesRules() && changesRule(change) {
			keys = append(keys, translate.RuleKey(key))
		}
	}
	if p.settings.Sidecars && len(c.Scopes) > 0 {
		for _, world := range []*catalog.Snapshot{before, s} { // there are few scopes
			for scope := range world.Scopes() {
				if _, changed := c.Scopes[scope.Record.Namespace]; changed {
					keys = append(keys, translate.ScopeKey(scope))
				}
			}
		}
	}
	return keys
}

func (p *Planner) writesRules() bool { return p.settings.WhyRetired(object.DestinationRule) == "" }

// changesRule reports whether a change of a service may change its DestinationRule, which
// depends on no endpoint.
func changesRule(c catalog.ServiceChange) bool {
	if c.Old != nil && c.New != nil && c.Old.Definition == c.New.Definition {
		return false
	}
	return translate.HasRule(c.Old) || translate.HasRule(c.New)
}

// RulesBeside returns the keys of the DestinationRules whose hosts a rule of another owner may
// be for.
func (p *Planner) RulesBeside(world *catalog.Snapshot, other object.OtherRule) (keys []object.Key) {
	for service := range world.Services() {
		if translate.HasRule(service) && other.IsFor(service.Written()) {
			keys = append(keys, translate.RuleKey(service.Key))
		}
	}
	return keys
}
