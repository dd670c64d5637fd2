package app

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/store"
)

// Machine is the environment of an application, except the folder of its store and
// connections that its parts open themselves. The laws of the whole
// application run on a machine in memory.
type Machine struct {
	// Store bounds the history of the store.
	Store store.Config
	// Memory makes the store of a process that has no folder.
	Memory func(store.Config) Records
	// OptionalWait is how long serving waits for sources that are not required.
	OptionalWait time.Duration
	// Listen binds a listener for clients or operators.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	// Load reads the configuration file. Watch reports, until ctx ends, that it is not as last loaded.
	Load  func(path string) (*config.Config, error)
	Watch func(ctx context.Context, path string, log *slog.Logger, changed func())
}

// thisMachine returns the machine of the process.
func thisMachine() Machine {
	file := new(config.Followed)
	return Machine{
		OptionalWait: OptionalWait,
		Memory:       func(c store.Config) Records { return store.NewMemory(c) },
		Listen:       new(net.ListenConfig).Listen, Load: file.Load, Watch: file.Watch,
	}
}
