package xds

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/bind"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loglimit"
	"github.com/isthmus-mesh/isthmus/internal/streams"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/push"
)

var (
	_ output.Settings = (*Config)(nil)
	_ output.Listener = (*Config)(nil)
	_ output.Cluster  = (*Config)(nil)
	_ output.Output   = (*opened)(nil)
)

// Translation makes the resources of services. This package carries them without knowledge
// of their content.
type Translation struct {
	Kinds Kinds
	// Settings returns the default settings of the translation.
	Settings func() Settings
	// Unserved is as in [output.Clients].
	Unserved func(s *catalog.Service) iter.Seq2[catalog.EndpointID, string]
	// Notices is as in [output.Clients], given the root namespace; nil if there are none.
	Notices func(now *catalog.Snapshot, root string) func(c push.Client) []output.Notice
	// Configuration makes the types that control planes read.
	Configuration Configuration
}

// Settings are the configuration of a translation. They do not change once it has begun.
type Settings interface {
	// Validate is as in [output.Settings].
	Validate() error
	// Domain returns the domain in which services are NAME.NAMESPACE.svc.DOMAIN.
	Domain() string
	// Types returns the table of types, given the debounce of changes of a type.
	Types(debounce func(typeURL string, m push.Mode) push.Debounce) []push.TypeSpec
	// Begin returns the function that makes the step to a snapshot of the catalog, for one
	// output.
	Begin() func(s *catalog.Snapshot, change catalog.Change, complete bool, rootNamespace string) push.Update
	// Conflicts is as in [output.Clients].
	Conflicts(ctx context.Context, now *catalog.Snapshot) func(s *catalog.Service) []catalog.Conflict
	// LoopbackConflicts returns further conflicts, at sidecars with INTERCEPTION_MODE NONE.
	LoopbackConflicts(ctx context.Context, now *catalog.Snapshot) func(s *catalog.Service) []catalog.Conflict
	// NotOffered returns a function as in [output.Clients].
	NotOffered() func(s *catalog.Service, kind string) string
}

// Configuration makes the resources of MCP-over-xDS. It makes nothing before the first
// client asks, because most clients are proxies.
type Configuration struct {
	Types func(debounce func(typeURL string, m push.Mode) push.Debounce) []push.TypeSpec
	// Begin returns the steps of one output, for an Isthmus of that name in paths.
	Begin func(self string) Steps
	// NotOffered is as in [output.Clients], of every kind that reads configuration. It also
	// reports omitted endpoints.
	NotOffered func(s *catalog.Service) string
}

// Steps makes worlds, each from the previous one. The first contains all of a snapshot.
type Steps interface {
	Step(s *catalog.Snapshot, change catalog.Change, complete bool, rootNamespace string) push.Update
	// LeftOut yields objects that cannot be served, with the reason.
	LeftOut() iter.Seq2[string, string]
}

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

// String implements [output.Settings].
func (c *Config) String() string { return "on " + c.Listen }

// Open implements [output.Settings].
func (c *Config) Open(ctx context.Context, env output.Env) (output.Output, error) {
	log := env.Log.With("output", "xds")
	keeper, err := c.Certificates(log)
	if err != nil {
		return nil, err
	}
	log = slog.New(loglimit.New(log.Handler())) // one limit for all lines that clients cause
	o := &opened{translation: c.translation, step: c.Envoy.Begin(), envoy: c.Envoy, withheld: c.Envoy.NotOffered(), root: env.RootNamespace, keeper: keeper, memory: output.NewMemory(env)}
	o.engine = push.New(push.Config{
		Order: Order(), Frame: Frame, Turn: c.Turn, Sent: output.Observing(env.Sent), ACKed: output.Observing(env.ACKed), Log: log,
	})
	o.services = o.engine.Produce(c.Envoy.Types(c.Debounce.Of))
	o.configuration = newConfiguration(o.engine, &c.translation.Configuration, c.Debounce.Of, env, log)
	options := Options{
		RootNamespace: env.RootNamespace, Readers: c.Configuration, Exposed: !streams.IsLocal(c.Listen), Configuration: o.configuration.names, Demand: o.configuration.demand,
		Kinds: c.translation.Kinds, Name: fmt.Sprintf("isthmus/%s %s", env.Version, env.Instance),
		Options: streams.Options{MaxConnectionAge: c.MaxConnectionAge, Log: log},
	}
	options.Secure(keeper, c.TLS)
	o.server = New(o.engine, options)
	if o.listener, err = bind.Listen(ctx, c.Listen, env.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w; choose another address or stop what listens there", err)
	}
	return o, nil
}

// opened is the server with its engine, as an output.
type opened struct {
	translation *Translation
	step        func(s *catalog.Snapshot, change catalog.Change, complete bool, rootNamespace string) push.Update
	envoy       Settings
	withheld    func(s *catalog.Service, kind string) string // why proxies are not offered a service
	root        string
	engine      *push.Engine
	services    *push.Producer // of the proxies' resources
	server      *Server
	memory      *output.Memory

	configuration *configuration
	listener      net.Listener
	keeper        *certs.Keeper // nil without TLS
}

// Publish implements [output.Output].
func (o *opened) Publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	remembers := o.memory.Published(complete)
	u := o.step(s, change, complete, o.root)
	u.Remembers, u.Waited = remembers, change.Waited
	o.services.Publish(u)
	o.configuration.publish(s, change, sources{complete, remembers, change.Waited})
}

// Run implements [output.Output].
func (o *opened) Run(ctx context.Context) error {
	return o.server.Run(ctx, o.listener, output.Drain)
}

// Report implements [output.Output].
func (o *opened) Report() output.Report {
	t := o.translation
	r := output.Report{Addr: o.listener.Addr(), Clients: &output.Clients{
		Engine: o.engine, Kinds: []string{t.Kinds.Envoy, t.Kinds.GRPC, t.Kinds.ControlPlane}, NotOffered: o.notOffered, Unserved: t.Unserved, Conflicts: o.conflicts,
	}}
	if t.Notices != nil {
		r.Clients.Notices = func(now *catalog.Snapshot) func(push.Client) []output.Notice { return t.Notices(now, o.root) }
	}
	r.Metrics = append(output.Streams("xds", o.server), o.configuration.metric())
	if o.keeper != nil {
		r.Metrics = append(r.Metrics, output.Certificates("xds", o.keeper)...)
	}
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

func (o *opened) notOffered(s *catalog.Service, kind string) string {
	if t := o.translation; kind == t.Kinds.ControlPlane {
		return t.Configuration.NotOffered(s)
	}
	return o.withheld(s, kind)
}
