package config

import (
	"cmp"
	"math"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
)

// Source configures one registry.
type Source struct {
	Name string `json:"name"`
	// Required sources must have been listed before serving starts. The default is true.
	Required *bool `json:"required"`
	// Hold defines suspicious drops, and how long they are held.
	Hold hold.Config `json:"hold"`
	// Only confines the source to some hosts, namespaces and addresses.
	Only source.Only `json:"only"`
	// LocalAddresses defines whether endpoints at local addresses are accepted.
	LocalAddresses source.LocalAddresses `json:"localAddresses"`
	// Network is the network of endpoints that name none.
	Network source.Network `json:"network"`
	// Owns gives hosts to the source, before all others.
	Owns source.Owns `json:"owns"`

	// Kind is the kind of registry, such as "file": a further key of the entry. Settings is
	// the value of that key.
	Kind     string
	Settings source.Settings

	// These are copied from the row of the kind: see [source.Kind].
	MaxBackoff time.Duration // the longest wait before a failed registry is read again
	Edited     bool          // people edit the registry
	Local      bool          // the registry is files of this machine
	holdFor    time.Duration // default of Hold.For

	others []string // further kinds in the entry, which validation rejects
}

// unset marks a duration that the file does not set. complete replaces it by the default.
const unset = time.Duration(math.MinInt64)

// SetDefaults sets the defaults that do not depend on the kind.
func (s *Source) SetDefaults() {
	s.Hold = hold.Default()
	s.Hold.For = unset
}

// complete sets the defaults that depend on the kind. It is called after decoding.
func (s *Source) complete() {
	if s.Hold.For == unset {
		s.Hold.For = cmp.Or(s.holdFor, hold.Default().For)
	}
	s.LocalAddresses = s.LocalAddresses.OrDefault(s.Local && !s.Only.Confines())
}

// keys and settings implement extensible: each kind of registry is a key of the entry.
func (s *Source) keys(kinds Kinds) []string { return names(kinds.Sources, sourceKind) }

func (s *Source) settings(kinds Kinds, key string) (into any, known bool) {
	kind, ok := find(kinds.Sources, sourceKind, key)
	if !ok {
		return nil, false
	}
	settings := kind.New()
	if s.Settings == nil {
		s.Kind, s.Settings, s.MaxBackoff, s.holdFor, s.Edited, s.Local = key, settings, kind.MaxBackoff, kind.HoldFor, kind.Edited, kind.Local
	} else {
		s.others = append(s.others, key)
	}
	return settings, true
}

// IsRequired reports whether readiness waits for the source.
func (s Source) IsRequired() bool { return s.Required == nil || *s.Required }

// Warnings lists the risks of the source before it is read.
func (s Source) Warnings() (list []string) {
	if s.Settings == nil {
		return nil
	}
	for _, warning := range s.Settings.Warnings() {
		list = append(list, s.Kind+"."+warning)
	}
	if !s.Local && !s.Only.Confines() {
		list = append(list, "only: not set, so the source is trusted with every host: its services unite with those of other sources of the same namespace and host; "+
			"confine it with only.hosts, only.namespaces or only.addresses unless that is wanted")
	}
	return list
}
