package istio

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Draft is a [Translation] of which no specification has been made: where a
// service has thousands of endpoints and one of them changes, most of its objects
// are made of the same as before, and need not be made again to know that.
type Draft struct {
	Parts   []DraftPart
	LeftOut []LeftOut
	Invalid string

	// What a [Placement] is made of.
	layout    Layout
	service   *catalog.Service
	ports     []model.Port
	groups    []group
	left      map[string]int
	endpoints int
}

// DraftPart is one of the objects of a draft.
type DraftPart struct {
	Kind            Kind
	Namespace, Name string
	Labels          map[string]string // shared: not to be changed; nil but for a WorkloadEntry
	Sources         []string

	service   *catalog.Service
	part      part
	endpoints int // of the service, in all parts
}

// Spec makes the specification.
func (p DraftPart) Spec() proto.Message { return p.part.spec(p.service, p.endpoints) }

// Selects reports whether the part is the one that selects the service's endpoints.
func (p DraftPart) Selects() bool { return p.part.selector != nil }

// PortNames are the names that ports have in the part, by number, if they have others
// in the service.
func (p DraftPart) PortNames() map[uint32]string {
	if p.Kind != ServiceEntry {
		return nil
	}
	isOwn := func(port model.Port) bool {
		own, _ := p.service.Port(port.Number)
		return own.Name == port.Name
	}
	if !slices.ContainsFunc(p.part.ports, func(port model.Port) bool { return !isOwn(port) }) {
		return nil
	}
	var names map[uint32]string
	own := writable(p.service.Ports) // some names are not taken by Istio
	for _, port := range p.part.ports {
		if slices.Contains(own, port) {
			continue
		}
		if names == nil {
			names = map[uint32]string{}
		}
		names[port.Number] = port.Name
	}
	return names
}

// Ingredients are what a specification was made of, in short: two of equal ones
// are equal. They keep what the catalog has of the endpoints, 16 bytes for each.
type Ingredients struct {
	definition *catalog.Definition
	host       string
	resolution model.Resolution
	ports      []model.Port
	endpoints  []ingredient
	selects    bool
}

// ingredient is an endpoint. What the catalog has of one does not change: it is
// replaced.
type ingredient struct {
	instance *catalog.Instance
	ports    uint64 // hash of those it serves
}

// Endpoints counts those of the specification.
func (i Ingredients) Endpoints() int { return len(i.endpoints) }

// Ingredients returns what the specification is made of.
func (p DraftPart) Ingredients() Ingredients {
	i := Ingredients{
		definition: p.service.Definition, host: p.service.Key.Host, resolution: resolution(p.service, p.endpoints), ports: p.part.ports,
		selects: p.Selects(), endpoints: make([]ingredient, len(p.part.endpoints)),
	}
	for at, e := range p.part.endpoints {
		i.endpoints[at] = e.ingredient()
	}
	return i
}

// MadeOf reports whether the specification would be made of some ingredients.
func (p DraftPart) MadeOf(i Ingredients) bool {
	return p.service.Definition == i.definition && p.service.Key.Host == i.host && resolution(p.service, p.endpoints) == i.resolution &&
		slices.Equal(p.part.ports, i.ports) && p.Selects() == i.selects &&
		slices.EqualFunc(p.part.endpoints, i.endpoints, func(e endpoint, known ingredient) bool {
			return e.Instance == known.instance && e.ingredient() == known
		})
}

func (e endpoint) ingredient() ingredient {
	h := hashOffset
	for _, s := range e.ports {
		h = (h ^ uint64(s.port)) * hashPrime
		h = (h ^ uint64(s.at)) * hashPrime
	}
	return ingredient{e.Instance, h}
}

// Those of FNV-1a.
const (
	hashOffset uint64 = 14695981039346656037
	hashPrime  uint64 = 1099511628211
)
