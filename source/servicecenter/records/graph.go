package records

import (
	"cmp"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// GraphPlace is the place of all records made from the dependencies. It has no slash,
// so it is no service's place.
const GraphPlace = "dependencies"

// Uses maps each consumer to the services it uses.
type Uses map[Identity]map[Name]bool

// Add adds a provider of a consumer.
func (u Uses) Add(consumer Identity, provider Name) {
	if u[consumer] == nil {
		u[consumer] = map[Name]bool{}
	}
	u[consumer][provider] = true
}

// Consumptions returns the records of all consumers, each with its providers.
func Consumptions(providers Uses, names map[Identity]Name) (objects []model.Object) {
	for _, consumer := range slices.SortedFunc(maps.Keys(providers), Identity.Compare) {
		objects = append(objects, consumption(names[consumer], providers[consumer]))
	}
	return objects
}

func consumption(consumer Name, providers map[Name]bool) model.Object {
	list := make([]model.ServiceName, 0, len(providers))
	for p := range providers {
		list = append(list, model.ServiceName(p))
	}
	slices.SortFunc(list, func(a, b model.ServiceName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Host, b.Host))
	})
	return model.Object{Record: model.Record{
		Ref:   model.Ref{Kind: model.KindConsumption, Key: model.Key{Namespace: consumer.Namespace, Name: consumer.Host}},
		Place: GraphPlace,
		Spec:  model.Consumption{Consumer: model.ServiceName(consumer), Providers: model.ListOf(list...)},
	}}
}
