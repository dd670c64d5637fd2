package watch

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/bind"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/streams"
)

var (
	_ output.Settings = (*Config)(nil)
	_ output.Listener = (*Config)(nil)
	_ output.Bearer   = (*Config)(nil)
	_ output.Output   = (*opened)(nil)
)

// OutputKind returns the row of this output.
func OutputKind() output.Kind {
	return output.Kind{Name: "watch", New: func() output.Settings { return &Config{Listen: defaultListen} }}
}

// Open implements [output.Settings].
func (c *Config) Open(ctx context.Context, env output.Env) (output.Output, error) {
	log := env.Log.With("output", "watch")
	keeper, err := c.TLS.Certificates(c.Listen, env.Servers, env.Identity, log)
	if err != nil {
		return nil, err
	}
	options := Options{Options: streams.Options{Log: log}}
	options.Secure(keeper, c.TLS, env.Identity)
	server := New(env, options)
	listener, err := bind.Listen(ctx, c.Listen, env.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address, or stop the process that uses it", err)
	}
	return &opened{server: server, listener: listener, keeper: keeper}, nil
}

// opened is the server, as an output.
type opened struct {
	server   *Server
	listener net.Listener
	keeper   *certs.Keeper // nil without TLS
}

// Publish implements [output.Output].
func (o *opened) Publish(s *catalog.Snapshot, change catalog.Change, _ bool) {
	o.server.Publish(s, change)
}

// Run implements [output.Output].
func (o *opened) Run(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return o.server.Run(ctx, o.listener, output.Drain) })
	parts.Go(func() error { o.server.Follow(ctx); return nil })
	return parts.Wait()
}

// Report implements [output.Output].
func (o *opened) Report() output.Report {
	return output.Report{
		Addr: o.listener.Addr(), Certificates: o.keeper,
		Metrics: append(output.Streams("watch", o.server), o.server.metrics()...),
	}
}
