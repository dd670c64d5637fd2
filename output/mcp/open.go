package mcp

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/bind"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loglimit"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
)

var (
	_ output.Settings = (*Config)(nil)
	_ output.Listener = (*Config)(nil)
	_ output.Bearer   = (*Config)(nil)
	_ output.Output   = (*opened)(nil)
)

// Translation makes the resources of collections. This package carries them without
// knowledge of their content.
type Translation struct {
	// Types returns the table of types, with the names of collections, given the debounce of
	// changes.
	Types func(debounce func(collection string, m world.Mode) world.Debounce) []world.TypeSpec
	// New returns the translator of one output, for an Isthmus of that name in paths.
	New func(self string) Translator
	// NotOffered is as in [output.Clients].
	NotOffered func(s *catalog.Service, kind string) string
}

// Translator makes the step to a snapshot of the catalog, from the previous one.
type Translator interface {
	Step(s *catalog.Snapshot, change catalog.Change, complete bool, rootNamespace string) world.Update
}

// OutputKind returns the row of this output.
func OutputKind(t Translation) output.Kind {
	return output.Kind{Name: "mcp", New: func() output.Settings { return newConfig(&t) }}
}

// ListenAddress implements [output.Listener].
func (c *Config) ListenAddress() string { return c.Listen }

// String implements [output.Settings].
func (c *Config) String() string {
	var parts []string
	if c.Listen != "" {
		parts = append(parts, "on "+c.Listen)
	}
	for _, s := range c.Sinks {
		parts = append(parts, "to "+s.Address)
	}
	return strings.Join(parts, ", ")
}

// debounce returns how long changes wait. Full states wait, because a sink reads all of one
// each time. Increments do not.
func (c *Config) debounce(_ string, m world.Mode) world.Debounce {
	if m == world.Delta || c.Debounce.Quiet == 0 {
		return world.Debounce{}
	}
	return c.Debounce
}

// EngineConfig returns the engine's configuration for the rules of the protocol: the wait
// for an answer is unlimited.
func EngineConfig() push.Config {
	return push.Config{Frame: Frame, Patience: math.MaxInt64, Budget: increment, Largest: Message - tailBytes}
}

// Open implements [output.Settings].
func (c *Config) Open(ctx context.Context, env output.Env) (output.Output, error) {
	log := env.Log.With("output", "mcp")
	keeper, err := c.TLS.Certificates(c.Listen, env.Servers, env.Identity, log)
	if err != nil {
		return nil, err
	}
	log = slog.New(loglimit.New(log.Handler())) // one limit for all lines that sinks cause
	o := &opened{translation: c.translation, translator: c.translation.New(env.Self), root: env.RootNamespace, keeper: keeper, memory: output.NewMemory(env)}
	engine := EngineConfig()
	engine.Sent, engine.ACKed, engine.Log = output.Observing(env.Sent), output.Observing(env.ACKed), log
	engine.Events = env.Events.Of("mcp")
	o.engine = push.New(engine)
	o.resources = o.engine.Produce(c.translation.Types(c.debounce))
	options := Options{RootNamespace: env.RootNamespace, Options: streams.Options{Log: log}}
	options.Secure(keeper, c.TLS, env.Identity)
	o.server = New(o.engine, options)
	for _, s := range c.Sinks {
		o.sinks = append(o.sinks, &dialled{Sink: s})
	}
	if c.Listen == "" {
		return o, nil
	}
	if o.listener, err = bind.Listen(ctx, c.Listen, env.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address, or stop the process that uses it", err)
	}
	return o, nil
}

// opened is the server with its engine, as an output.
type opened struct {
	translation *Translation
	translator  Translator
	root        string
	engine      *push.Engine
	resources   *push.Producer
	server      *Server
	memory      *output.Memory
	listener    net.Listener // nil if it only dials
	sinks       []*dialled
	keeper      *certs.Keeper // nil without TLS
}

// Publish implements [output.Output].
func (o *opened) Publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	u := o.translator.Step(s, change, complete, o.root)
	u.Remembers, u.Waited = o.memory.Published(complete), change.Waited
	o.resources.Publish(u)
}

// Run implements [output.Output].
func (o *opened) Run(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return o.server.Run(ctx, o.listener, output.Drain) })
	parts.Go(func() error { o.server.dialAll(ctx, o.sinks); return nil })
	return parts.Wait()
}

// dialAll keeps streams to sinks until ctx ends.
func (s *Server) dialAll(ctx context.Context, sinks []*dialled) {
	var all sync.WaitGroup
	for _, d := range sinks {
		all.Go(func() { s.dial(ctx, d) })
	}
	all.Wait()
}

// Report implements [output.Output].
func (o *opened) Report() output.Report {
	t := o.translation
	r := output.Report{Certificates: o.keeper, Clients: &output.Clients{
		Engine: o.engine, Kinds: []string{kind}, NotOffered: t.NotOffered,
		Explain: func(now *catalog.Snapshot, call output.Call) output.Trace {
			return output.ToControlPlane(now, call, t.NotOffered)
		},
		Unserved: func(*catalog.Service) iter.Seq2[catalog.EndpointID, string] { return none },
	}}
	if o.listener != nil {
		r.Addr = o.listener.Addr()
	}
	r.Metrics = append(output.Streams("mcp", o.server), o.reached()...)
	return r
}

// none: a collection has every endpoint.
func none(func(catalog.EndpointID, string) bool) {}

// reached reports which dialled sinks have a stream.
func (o *opened) reached() (list []output.Metric) {
	for _, d := range o.sinks {
		up := 0.0
		if d.up.Load() {
			up = 1
		}
		list = append(list, output.Metric{
			Name: "isthmus_mcp_sink_up", Help: "Whether a sink that is dialled has a stream and has asked for something.",
			Labels: []output.Label{{Name: "sink", Value: d.Address}}, Value: up,
		})
	}
	return list
}
