package app

import (
	"context"
	"log/slog"
	"net"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/store"
)

// machine is what an application reaches outside of itself, but for the folder
// of its store and what its parts reach by themselves. The laws of the whole are
// tested with one that is all in memory.
type machine struct {
	store store.Config
	// memory makes the store of a process that has no folder.
	memory func(store.Config) records
	// listen binds what clients and what operators connect to.
	listen func(ctx context.Context, network, address string) (net.Listener, error)
	// load reads the configuration file, and watch tells when to do so again,
	// until ctx ends.
	load  func(path string) (*config.Config, error)
	watch func(ctx context.Context, path string, log *slog.Logger, changed func())
}

// thisMachine is the one the process runs on.
func thisMachine() machine {
	return machine{
		memory: func(c store.Config) records { return store.NewMemory(c) },
		listen: new(net.ListenConfig).Listen, load: config.Load, watch: config.Watch,
	}
}
