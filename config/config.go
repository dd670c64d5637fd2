package config

import "github.com/isthmus-mesh/isthmus/identity"

// Config is the whole configuration.
type Config struct {
	// Instance is the unique name of this installation. It marks the objects that the
	// installation writes, and appears in the paths of records.
	Instance string `json:"instance"`
	// RootNamespace contains the default scopes, for workloads without a scope of their own.
	RootNamespace string `json:"rootNamespace"`
	// Sources are the registries, in merge order.
	Sources []Source `json:"sources"`
	Splits  []Split  `json:"splits"`
	Outputs Outputs  `json:"outputs"`
	// Identity defines the proofs of identity that listeners with TLS take beside certificates.
	Identity identity.Config `json:"identity"`
	Store    Store           `json:"store"`
	Admin    Admin           `json:"admin"`
	Log      Log             `json:"log"`
}

// Store configures how records are kept.
type Store struct {
	// DataDir is the folder in which the last known good survives a restart. If it is empty,
	// nothing is saved.
	DataDir string `json:"dataDir"`
}

// Log configures the log.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn or error
	Format string `json:"format"` // text or json
}

// The defaults of Config.Instance and Admin.Listen.
const (
	DefaultInstance    = "isthmus"
	DefaultAdminListen = "127.0.0.1:8080"
)

func defaults() Config {
	return Config{
		Instance:      DefaultInstance,
		RootNamespace: "istio-system",
		Identity:      identity.Config{Authority: identity.Authority{TTL: identity.DefaultTTL}},
		Admin:         Admin{Listen: DefaultAdminListen},
		Log:           Log{Level: "info", Format: "text"},
	}
}
