package catalog

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Consumption is the services that a consumer uses, as far as any registry knows. It is
// immutable, and replaced by another when one of its records changes.
type Consumption struct {
	Consumer ServiceKey
	// Providers are the services that any record names, each once, by host and namespace. A
	// service of that name need not exist.
	Providers []ServiceKey
	// Records are the records about the consumer, in merge order.
	Records []Contributor
}

// Consumptions yields the consumption of each consumer, ordered by host and namespace.
func (s *Snapshot) Consumptions() iter.Seq[*Consumption] { return values(s.consumptions) }

// Consumption returns the consumption of a consumer.
func (s *Snapshot) Consumption(consumer ServiceKey) (*Consumption, bool) {
	return s.consumptions.Get(consumer)
}

// newConsumptions unites records by consumer: the providers of several registries add up.
func newConsumptions() *united[ServiceKey, Consumption] {
	return newUnited(uniting[ServiceKey, Consumption]{
		key: func(r *model.Record) (ServiceKey, bool) {
			spec, ok := specOf[model.Consumption](r)
			return ServiceKey(spec.Consumer), ok
		},
		unite: uniteConsumption,
		same: func(a, b *Consumption) bool {
			return slices.Equal(a.Providers, b.Providers) && slices.EqualFunc(a.Records, b.Records, Contributor.equal)
		},
	})
}

func uniteConsumption(consumer ServiceKey, members []*member) *Consumption {
	c := &Consumption{Consumer: consumer}
	for _, m := range members {
		spec, _ := m.spec.(model.Consumption) // its key proves the type
		for provider := range spec.Providers.All() {
			c.Providers = append(c.Providers, ServiceKey(provider))
		}
		c.Records = append(c.Records, m.contributor())
	}
	slices.SortFunc(c.Providers, ServiceKey.compare)
	c.Providers = slices.Compact(c.Providers)
	return c
}
