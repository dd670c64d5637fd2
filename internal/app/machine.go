package app

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/store"
)

// machine is what an application reaches outside of itself, but for the folder
// of its store. The laws of the whole are tested with one that is all in memory.
type machine struct {
	store store.Config
	// memory makes the store of a process that has no folder.
	memory func(store.Config) records
	// claims say which sources this process may write for.
	claims source.Claims
	// listen binds what clients and what operators connect to.
	listen func(ctx context.Context, c *config.Config) (xds, admin net.Listener, err error)
	// reader makes what reads a registry.
	reader func(configured) source.Source
	// load reads the configuration file, and watch tells when to do so again,
	// until ctx ends.
	load  func(path string) (*config.Config, error)
	watch func(ctx context.Context, path string, log *slog.Logger, changed func())
}

// configured is an entry of the configuration, with what its reader needs beside it.
type configured struct {
	config.Source
	instance string                        // whose reader it is
	stored   func() iter.Seq[model.Record] // of this source, at the time
	log      *slog.Logger
}

// thisMachine is the one the process runs on.
func thisMachine() machine {
	return machine{
		memory: func(c store.Config) records { return store.NewMemory(c) }, claims: source.Sole{},
		listen: bind, reader: readerOf, load: config.Load, watch: config.Watch,
	}
}

// bind listens for those outputs that there are; a listener of none is nil.
func bind(ctx context.Context, c *config.Config) (forXDS, forAdmin net.Listener, err error) {
	if c.Outputs.XDS != nil {
		if forXDS, err = xds.Listen(ctx, *c.Outputs.XDS); err != nil {
			return nil, nil, fmt.Errorf("outputs.xds.listen: %w; choose another address or stop what listens there", err)
		}
	}
	var lc net.ListenConfig
	if forAdmin, err = lc.Listen(ctx, "tcp", c.Admin.Listen); err != nil {
		if forXDS != nil {
			_ = forXDS.Close()
		}
		return nil, nil, fmt.Errorf("admin.listen: %w; choose another address or stop what listens there", err)
	}
	return forXDS, forAdmin, nil
}

func readerOf(r configured) source.Source {
	if r.ServiceCenter != nil {
		return servicecenter.New(*r.ServiceCenter, servicecenter.Options{
			Instance: r.instance, Name: r.Name, Log: r.log, Stored: r.stored,
		})
	}
	return file.New(*r.File, r.log)
}
