package config

import (
	"cmp"
	"math"
	"time"

	"github.com/isthmus-mesh/isthmus/output/istio"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
)

// Config is the whole configuration.
type Config struct {
	// Instance marks what this installation owns; two installations differ in it.
	Instance string `json:"instance"`
	// RootNamespace is where the scopes live that hold for workloads without
	// one of their own.
	RootNamespace string `json:"rootNamespace"`
	// Sources are merged in this order.
	Sources []Source `json:"sources"`
	Outputs Outputs  `json:"outputs"`
	Store   Store    `json:"store"`
	Admin   Admin    `json:"admin"`
	Log     Log      `json:"log"`
}

// Source is one registry. Exactly one kind is set.
type Source struct {
	Name string `json:"name"`
	// Required sources must have been listed before anything is served.
	Required *bool `json:"required"`
	// Hold says which drops are suspicious, and how long they wait.
	Hold source.Hold `json:"hold"`

	File          *file.Config          `json:"file"`
	ServiceCenter *servicecenter.Config `json:"servicecenter"`
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
	if s.Hold.For != unset {
		return
	}
	s.Hold.For = source.DefaultHold().For
	for _, k := range s.kinds() {
		s.Hold.For = cmp.Or(k.holdFor, s.Hold.For)
	}
}

// kind is a kind of registry that a source names.
type kind struct {
	key     string
	config  interface{ Validate() error }
	holdFor time.Duration // how long drops of it are held; zero for as long as any other's
}

// kinds are those that the source names, which must be one.
func (s Source) kinds() (named []kind) {
	if s.File != nil {
		named = append(named, kind{"file", s.File, 0})
	}
	if s.ServiceCenter != nil {
		named = append(named, kind{"servicecenter", s.ServiceCenter, servicecenter.HoldFor})
	}
	return named
}

// Kind is the key of the kind of registry.
func (s Source) Kind() string {
	if kinds := s.kinds(); len(kinds) > 0 {
		return kinds[0].key
	}
	return ""
}

// Warnings lists what an operator should know of the source before it is read.
func (s Source) Warnings() []string {
	if s.ServiceCenter != nil {
		return s.ServiceCenter.Warnings()
	}
	return nil
}

// IsRequired reports whether readiness waits for the source.
func (s Source) IsRequired() bool { return s.Required == nil || *s.Required }

// Outputs are where the catalog goes. One that is nil is switched off.
type Outputs struct {
	XDS   *xds.Config   `json:"xds"`
	Istio *istio.Config `json:"istio"`
}

// Store says how records are kept.
type Store struct {
	// DataDir is a folder for the last known good, which then survives a
	// restart; empty keeps nothing.
	DataDir string `json:"dataDir"`
}

// Log says what is logged and how.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn or error
	Format string `json:"format"` // text or json
}

func defaults() Config {
	return Config{
		Instance:      "isthmus",
		RootNamespace: "istio-system",
		Admin:         Admin{Listen: "127.0.0.1:8080"},
		Log:           Log{Level: "info", Format: "text"},
	}
}
