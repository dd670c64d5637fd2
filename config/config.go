package config

// Config is the whole configuration.
type Config struct {
	// Instance marks the objects of this installation, and is its name in paths; two
	// installations differ in it.
	Instance string `json:"instance"`
	// RootNamespace is the namespace of the scopes for workloads without one of their own.
	RootNamespace string `json:"rootNamespace"`
	// Sources are merged in this order.
	Sources []Source `json:"sources"`
	Outputs Outputs  `json:"outputs"`
	Store   Store    `json:"store"`
	Admin   Admin    `json:"admin"`
	Log     Log      `json:"log"`
}

// Store configures how records are kept.
type Store struct {
	// DataDir is a folder for the last known good, which then survives a
	// restart; empty keeps nothing.
	DataDir string `json:"dataDir"`
}

// Log configures the log.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn or error
	Format string `json:"format"` // text or json
}

// DefaultInstance is the instance of an installation without a configured name.
const DefaultInstance = "isthmus"

func defaults() Config {
	return Config{
		Instance:      DefaultInstance,
		RootNamespace: "istio-system",
		Admin:         Admin{Listen: "127.0.0.1:8080"},
		Log:           Log{Level: "info", Format: "text"},
	}
}
