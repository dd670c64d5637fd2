package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/file"
	"github.com/isthmus-mesh/isthmus/store"
)

// machine is what an application reaches outside of itself, but for the folder
// of its store. The laws of the whole are tested with one that is all in memory.
type machine struct {
	store store.Config
	// listen binds what clients and what operators connect to.
	listen func(ctx context.Context, c *config.Config) (xds, admin net.Listener, err error)
	// reader reads the registry that an entry of the configuration describes.
	reader func(s config.Source, log *slog.Logger) source.Source
	// load reads the configuration file, and watch tells when to do so again,
	// until ctx ends.
	load  func(path string) (*config.Config, error)
	watch func(ctx context.Context, path string, log *slog.Logger, changed func())
}

// thisMachine is the one the process runs on.
func thisMachine() machine {
	return machine{listen: bind, reader: readerOf, load: config.Load, watch: config.Watch}
}

func bind(ctx context.Context, c *config.Config) (forXDS, forAdmin net.Listener, err error) {
	if forXDS, err = xds.Listen(ctx, *c.Outputs.XDS); err != nil {
		return nil, nil, fmt.Errorf("outputs.xds.listen: %w; choose another address or stop what listens there", err)
	}
	var lc net.ListenConfig
	if forAdmin, err = lc.Listen(ctx, "tcp", c.Admin.Listen); err != nil {
		_ = forXDS.Close()
		return nil, nil, fmt.Errorf("admin.listen: %w; choose another address or stop what listens there", err)
	}
	return forXDS, forAdmin, nil
}

func readerOf(s config.Source, log *slog.Logger) source.Source { return file.New(*s.File, log) }
