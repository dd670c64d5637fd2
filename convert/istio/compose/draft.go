package compose

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// Draft is a [Translation] without specifications. If one endpoint of thousands changes,
// most objects of the service are made of the same ingredients as before. They are
// recognized without being made again.
type Draft struct {
	Parts   []DraftPart
	LeftOut []LeftOut
	Invalid string

	// The ingredients of a [Placement].
	layout    Layout
	service   *catalog.Service
	ports     []model.Port
	groups    []group
	left      map[string]int
	endpoints int
}

// DraftPart is an object of a draft.
type DraftPart struct {
	Kind            istio.Kind
	Namespace, Name string
	Labels          map[string]string // shared: not to be changed; only a WorkloadEntry has labels
	Sources         []string

	service   *catalog.Service
	part      part
	endpoints int // of the service, in all parts
}

// Spec makes the specification.
func (p DraftPart) Spec() proto.Message { return p.part.spec(p.service, p.endpoints) }

// Selects reports whether the part selects the service's endpoints.
func (p DraftPart) Selects() bool { return p.part.selector != nil }

// PortNames returns the names of ports in the part, by number, that differ from the
// service's names.
func (p DraftPart) PortNames() map[uint32]string {
	if p.Kind != istio.ServiceEntry {
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
	own := writable(WrittenPorts(p.service)) // Istio rejects some names
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

// Ingredients identify the data that a specification was made of: equal ingredients make
// equal specifications. They keep the catalog's instances in memory, 16 bytes for each
// endpoint.
type Ingredients struct {
	definition *catalog.Definition
	host       string
	resolution model.Resolution
	ports      []model.Port
	endpoints  []ingredient
	selects    bool
}

// ingredient is an endpoint. An instance of the catalog does not change: it is replaced, if only by an equal one.
type ingredient struct {
	instance *catalog.Instance
	ports    uint64 // hash of the served ports
}

// Endpoints returns the number of endpoints of the specification.
func (i Ingredients) Endpoints() int { return len(i.endpoints) }

// Ingredients returns the ingredients of the specification.
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

// MadeOf reports whether the specification would be made of the given ingredients.
func (p DraftPart) MadeOf(i Ingredients) bool {
	return p.service.Definition == i.definition && p.service.Key.Host == i.host && resolution(p.service, p.endpoints) == i.resolution &&
		slices.Equal(p.part.ports, i.ports) && p.Selects() == i.selects &&
		slices.EqualFunc(p.part.endpoints, i.endpoints, func(e endpoint, known ingredient) bool {
			return e.Same(known.instance) && e.ingredient().ports == known.ports
		})
}

func (e endpoint) ingredient() ingredient {
	h := hashOffset
	for _, c := range []byte(e.Network) {
		h = (h ^ uint64(c)) * hashPrime
	}
	for _, s := range e.ports {
		h = (h ^ uint64(s.port)) * hashPrime
		h = (h ^ uint64(s.at)) * hashPrime
	}
	return ingredient{e.Instance, h}
}

// The constants of FNV-1a.
const (
	hashOffset uint64 = 14695981039346656037
	hashPrime  uint64 = 1099511628211
)

// Paths returns the paths of the part's items, without endpoints that are not ready.
func (p DraftPart) Paths() istio.Paths {
	all := istio.Paths{Object: p.service.Path(), Ports: make([]model.Path, len(p.part.ports)), Endpoints: make([]model.Path, len(p.part.endpoints))}
	for i, port := range p.part.ports {
		all.Ports[i] = p.service.PortPath(port.Number)
	}
	for i, e := range p.part.endpoints {
		all.Endpoints[i] = e.Path
	}
	return all
}

func (p part) draft(s *catalog.Service, endpoints int) DraftPart {
	return DraftPart{
		Kind: p.kind, Namespace: s.Key.Namespace, Name: p.name, Labels: p.labels, Sources: p.sources(s),
		service: s, part: p, endpoints: endpoints,
	}
}

func (p part) sources(s *catalog.Service) []string {
	names := s.Sources()
	var others []string
	last := ""
	for _, e := range p.endpoints {
		name := e.Record.Source
		if name == last {
			continue
		}
		last = name
		if !slices.Contains(names, name) && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}
