// Package split divides the calls to a service between backends: each gets its share, however
// many endpoints with weights of their own it has.
package split

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// Split divides the calls to a service between backends. It is immutable.
type Split struct {
	Backends []model.Backend
	// NearFirst means that clients use near endpoints first as without a split. Then each
	// client has the shares of the endpoints that are nearest to it.
	NearFirst bool
}

// The bounds of a split.
const (
	MostBackends = 64
	MostWeight   = 1_000_000 // of a backend
)

// Equal reports whether both divide alike; nil is no split.
func (s *Split) Equal(o *Split) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.NearFirst == o.NearFirst && slices.EqualFunc(s.Backends, o.Backends, model.Backend.Equal)
}

// IgnoresLocality reports whether clients treat near and far endpoints alike; false without
// a split.
func (s *Split) IgnoresLocality() bool { return s != nil && !s.NearFirst }

// Weights returns the shares that the backends ask for.
func (s *Split) Weights() []uint32 {
	list := make([]uint32, len(s.Backends))
	for i, b := range s.Backends {
		list[i] = b.Weight
	}
	return list
}

// Has reports whether a backend has an endpoint, given its service, source and labels. The
// service is empty for the endpoints of the divided one.
func (s *Split) Has(backend int, of model.ServiceName, source string, labels model.Labels) bool {
	b := s.Backends[backend]
	return b.Service == of && (b.Source == "" || b.Source == source) && labels.Includes(b.Labels)
}

// Share is the share of a backend.
type Share struct {
	model.Backend
	Asked     float64 // of 1
	Effective float64 // of 1, after backends without healthy endpoints have passed on theirs
	Usable    int     // healthy endpoints
	LeftOut   string  // why the service of the backend is left out; empty if it is not
}

// Shares returns the shares of the backends, given the number of healthy endpoints of each.
func (s *Split) Shares(healthy []int) []Share {
	list, asked, whole := make([]Share, len(s.Backends)), 0.0, 0.0
	for i, b := range s.Backends {
		list[i] = Share{Backend: b, Usable: healthy[i]}
		asked += float64(b.Weight)
		if healthy[i] > 0 {
			whole += float64(b.Weight)
		}
	}
	for i := range list {
		if asked > 0 {
			list[i].Asked = float64(list[i].Weight) / asked
		}
		if list[i].Usable > 0 && whole > 0 {
			list[i].Effective = float64(list[i].Weight) / whole
		}
	}
	return list
}
