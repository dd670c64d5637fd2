package app

import (
	"context"
	"log/slog"
	"net"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/store"
)

// machine is the environment of an application, except the folder of its store and
// connections that its parts open themselves. The tests of the whole application use a
// machine in memory.
type machine struct {
	store store.Config
	// memory makes the store of a process that has no folder.
	memory func(store.Config) records
	// listen binds a listener for clients or operators.
	listen func(ctx context.Context, network, address string) (net.Listener, error)
	// load reads the configuration file. watch reports changes of the file, until ctx ends.
	load  func(path string) (*config.Config, error)
	watch func(ctx context.Context, path string, log *slog.Logger, changed func())
}

// thisMachine returns the machine of the process.
func thisMachine() machine {
	return machine{
		memory: func(c store.Config) records { return store.NewMemory(c) },
		listen: new(net.ListenConfig).Listen, load: config.Load, watch: config.Watch,
	}
}
