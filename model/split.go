package model

import "slices"

// Split divides the calls to a service of its own namespace between backends.
type Split struct {
	Meta
	// Host is the host of the service.
	Host     string    `json:"host"`
	Backends []Backend `json:"backends,omitempty"` // never written once stored
	// NearFirst means that clients use near endpoints first, as without a split.
	NearFirst bool `json:"nearFirst,omitempty"`
	// NoEffect is why the split divides nothing, such as an unsupported rule; empty if it divides.
	NoEffect string `json:"noEffect,omitempty"`
}

// EqualSpec implements [Spec].
func (s Split) EqualSpec(spec Spec) bool {
	o, ok := spec.(Split)
	return ok && s.SameMeta(o.Meta) && s.Host == o.Host && s.NearFirst == o.NearFirst && s.NoEffect == o.NoEffect &&
		slices.EqualFunc(s.Backends, o.Backends, Backend.Equal)
}

// Backend is the endpoints that get one share of the calls to a host. Endpoints match all the
// fields that are set.
type Backend struct {
	// Service is another service with the endpoints. It is zero for the service that is divided.
	Service ServiceName `json:"service,omitzero"`
	Source  string      `json:"source,omitempty"` // of the endpoints; empty for any
	Labels  Labels      `json:"labels,omitzero"`  // of the endpoints; empty for any
	Weight  uint32      `json:"weight,omitempty"` // relative to the other backends
}

// Equal reports whether b and o are equal.
func (b Backend) Equal(o Backend) bool {
	return b.Service == o.Service && b.Source == o.Source && b.Labels.Equal(o.Labels) && b.Weight == o.Weight
}
