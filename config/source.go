package config

import (
	"cmp"
	"math"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// Source is one registry.
type Source struct {
	Name string `json:"name"`
	// Required sources must have been listed before anything is served.
	Required *bool `json:"required"`
	// Hold says which drops are suspicious, and how long they wait.
	Hold source.Hold `json:"hold"`
	// Only confines the source to some hosts, namespaces and addresses.
	Only source.Only `json:"only"`
	// LocalAddresses says whether endpoints at local addresses are taken.
	LocalAddresses source.LocalAddresses `json:"localAddresses"`
	// Owns gives hosts to the source, before all others.
	Owns source.Owns `json:"owns"`

	// Kind is the key of the kind of registry, which stands beside the fields
	// above, and Settings are what it is given.
	Kind     string
	Settings source.Settings
	// MaxBackoff bounds the wait before the registry is read again after it
	// failed. It is its kind's.
	MaxBackoff time.Duration
	// Edited says that people edit the registry. It is its kind's, too.
	Edited bool
	// Local says that the registry is files of this machine. It is its kind's as well.
	Local bool

	holdFor time.Duration // by default
	others  []string      // further kinds that it names, though a source is one registry
}

// unset stands for a duration of which nothing is said, until it is known what
// its default depends on.
const unset = time.Duration(math.MinInt64)

// SetDefaults gives the entry what it has if nothing is said.
func (s *Source) SetDefaults() {
	s.Hold = source.DefaultHold()
	s.Hold.For = unset
}

// complete gives the entry the defaults that depend on the kind of registry.
func (s *Source) complete() {
	if s.Hold.For == unset {
		s.Hold.For = cmp.Or(s.holdFor, source.DefaultHold().For)
	}
	if s.LocalAddresses == "" {
		s.LocalAddresses = source.RejectLocal
		if s.Local && !s.Only.Confines() {
			s.LocalAddresses = source.AllowLocal
		}
	}
}

// keys and settings make a kind of registry a key of the entry.
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

// Warnings lists what an operator should know of the source before it is read.
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
