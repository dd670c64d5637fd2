package index

import "github.com/isthmus-mesh/isthmus/model"

// IsEndpoint reports whether records of that kind are endpoints.
func IsEndpoint(kind model.Kind) bool {
	return kind == model.KindEndpoint || kind == model.KindWorkload
}

// EndpointsIn returns how many endpoints a record of that kind counts for.
func EndpointsIn(kind model.Kind) int {
	if IsEndpoint(kind) {
		return 1
	}
	return 0
}

// Stock counts the records of a source.
type Stock struct {
	Stored    int // of all kinds
	Endpoints int
	Services  int
}

// Add counts a record, or with -1 discounts it.
func (s *Stock) Add(ref model.Ref, by int) {
	s.Stored += by
	s.Endpoints += by * EndpointsIn(ref.Kind)
	if ref.Kind == model.KindService {
		s.Services += by
	}
}
