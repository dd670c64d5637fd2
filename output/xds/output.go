package xds

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"slices"
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
	"github.com/isthmus-mesh/isthmus/secrets"
)

var (
	_ output.Settings = (*Config)(nil)
	_ output.Listener = (*Config)(nil)
	_ output.Bearer   = (*Config)(nil)
	_ output.Cluster  = (*Config)(nil)
	_ output.Output   = (*opened)(nil)
)

// OutputKind returns the row of this output.
func OutputKind(t Translation) output.Kind {
	return output.Kind{Name: "xds", New: func() output.Settings {
		c := &Config{translation: &t, Debounce: defaultDebounces()}
		if t.Settings != nil {
			c.Envoy = t.Settings()
		}
		return c
	}}
}

// ListenAddress implements [output.Listener].
func (c *Config) ListenAddress() string { return c.Listen }

// ClusterDomain implements [output.Cluster].
func (c *Config) ClusterDomain() string {
	if c.Envoy == nil {
		return ""
	}
	return c.Envoy.Domain()
}

// Subsets returns the labels of the subsets of a host, by their names.
func (c *Config) Subsets(host string) map[string]map[string]string {
	if c.Envoy == nil {
		return nil
	}
	return c.Envoy.Subsets(host)
}

// FailsOver reports whether clients use the endpoints of a host by distance.
func (c *Config) FailsOver(host string) bool { return c.Envoy != nil && c.Envoy.FailsOver(host) }

// String implements [output.Settings].
func (c *Config) String() string { return "on " + c.Listen }

// Open implements [output.Settings].
func (c *Config) Open(ctx context.Context, env output.Env) (output.Output, error) {
	log := env.Log.With("output", "xds")
	files, err := c.TLS.Certificates(c.Listen, env.Servers, env.Identity, log)
	if err != nil {
		return nil, err
	}
	log = slog.New(loglimit.New(log.Handler())) // one limit for all lines that clients cause
	var keeper *secrets.Keeper
	if env.Certificates != nil {
		keeper = secrets.NewKeeper(env.Certificates, env.Events.Of("xds"), log)
	}
	step, withheld := c.Envoy.Begin(keeper), c.Envoy.NotOffered()
	engine := push.New(push.Config{
		Order: Order(), Frame: Frame, Turn: c.Turn, Sent: output.Observing(env.Sent), ACKed: output.Observing(env.ACKed),
		Events: env.Events.Of("xds"), Log: log,
	})
	services := engine.Produce(c.Envoy.Types(c.Debounce.Of))
	configuration := newConfiguration(engine, &c.translation.Configuration, c.Debounce.Of, env, log)
	options := Options{
		Kinds: c.translation.Kinds, Secrets: keeper, Name: fmt.Sprintf("isthmus/%s %s", env.Version, env.Instance),
		Configuration: Offer{
			Types: configuration.names, Demand: configuration.demand, Readers: c.Configuration, Exposed: !streams.IsLocal(c.Listen),
		},
		Options: streams.Options{MaxConnectionAge: c.MaxConnectionAge, Log: log},
	}
	options.Secure(files, c.TLS, env.Identity)
	server := New(engine, options)
	listener, err := bind.Listen(ctx, c.Listen, env.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address, or stop the process that uses it", err)
	}
	return &opened{
		translation: c.translation, step: step, envoy: c.Envoy, withheld: withheld, root: env.RootNamespace, memory: output.NewMemory(env),
		engine: engine, services: services, configuration: configuration, server: server, listener: listener, files: files, secrets: keeper,
	}, nil
}

// opened is the server with its engine, as an output.
type opened struct {
	translation *Translation
	step        func(s *catalog.Snapshot, change catalog.Change, complete bool, rootNamespace string) world.Update
	envoy       Settings
	withheld    func(s *catalog.Service, kind string) string // why proxies are not offered a service
	root        string
	engine      *push.Engine
	services    *push.Producer // of the proxies' resources
	server      *Server
	memory      *output.Memory

	configuration *configuration
	listener      net.Listener
	files         *certs.Keeper   // nil without TLS
	secrets       *secrets.Keeper // nil if no certificates are served

	mu   sync.Mutex
	last world.Update // of the services, without its changes
}

// Publish implements [output.Output].
func (o *opened) Publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	remembers := o.memory.Published(complete)
	u := o.step(s, change, complete, o.root)
	u.Remembers, u.Waited = remembers, change.Waited
	o.mu.Lock()
	o.services.Publish(u)
	o.last = world.Update{World: u.World, Remembers: u.Remembers, Waited: u.Waited}
	o.mu.Unlock()
	o.configuration.publish(s, change, sources{complete, remembers, change.Waited})
}

// Run implements [output.Output].
func (o *opened) Run(ctx context.Context) error {
	if o.secrets == nil {
		return o.server.Run(ctx, o.listener, output.Drain)
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return o.server.Run(ctx, o.listener, output.Drain) })
	parts.Go(func() error { o.secrets.Run(ctx, o.renewed); return nil })
	return parts.Wait()
}

// renewed publishes a renewal of certificates.
func (o *opened) renewed(r secrets.Renewal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last.World == nil { // nothing is published yet, so no client was sent the one before
		return
	}
	u := o.envoy.Renewed(o.last.World, r)
	u.Remembers, u.Waited = o.last.Remembers, o.last.Waited
	o.last.World = u.World
	o.services.Publish(u)
}

// Report implements [output.Output].
func (o *opened) Report() output.Report {
	t := o.translation
	r := output.Report{Addr: o.listener.Addr(), Certificates: o.files, Clients: &output.Clients{
		Engine: o.engine, Kinds: []string{t.Kinds.Envoy, t.Kinds.GRPC, t.Kinds.ControlPlane}, NotOffered: o.notOffered, Unserved: o.envoy.Unserved(), Conflicts: o.conflicts, Losers: o.losers, Explain: o.explain, Named: t.Named, InexactShares: o.envoy.InexactShares(),
	}}
	if o.secrets != nil {
		r.Clients.Authorities, r.Clients.Certificates = t.Authorities, o.secrets
	}
	if t.Notices != nil {
		r.Clients.Notices = func(now *catalog.Snapshot) func(world.Client) []output.Notice { return t.Notices(now, o.root) }
	}
	r.Metrics = append(output.Streams("xds", o.server), o.configuration.metric())
	return r
}

// conflicts adds the conflicts at sidecars with INTERCEPTION_MODE NONE while one is
// connected: they are irrelevant to all other clients.
func (o *opened) conflicts(ctx context.Context, now *catalog.Snapshot) func(s *catalog.Service) []catalog.Conflict {
	redirected := o.envoy.Conflicts(ctx, now)
	if !o.server.hasUnredirected() {
		return redirected
	}
	loopback := o.envoy.LoopbackConflicts(ctx, now)
	return func(s *catalog.Service) []catalog.Conflict {
		list := redirected(s)
		for _, more := range loopback(s) {
			if !slices.ContainsFunc(list, func(c catalog.Conflict) bool { return c.Field == more.Field && c.Kept == more.Kept }) {
				list = append(slices.Clip(list), more)
			}
		}
		return list
	}
}

// losers yields the services with conflicts at sidecars, as [opened.conflicts] has them.
func (o *opened) losers(ctx context.Context, now *catalog.Snapshot) iter.Seq2[catalog.ServiceKey, catalog.Conflict] {
	return o.envoy.Losers(ctx, now, o.server.hasUnredirected())
}

// explain follows a call of a proxy. A control plane makes no calls.
func (o *opened) explain(now *catalog.Snapshot, call output.Call) output.Trace {
	if call.Client.Kind == o.translation.Kinds.ControlPlane {
		return output.ToControlPlane(now, call, o.notOffered)
	}
	read := func(typeURL, name string) *world.Encoded { return o.engine.Read(call.Client, typeURL, name) }
	return o.envoy.Explain(now, o.root, read, call)
}

func (o *opened) notOffered(s *catalog.Service, kind string) string {
	if t := o.translation; kind == t.Kinds.ControlPlane {
		return t.Configuration.NotOffered(s)
	}
	return o.withheld(s, kind)
}
