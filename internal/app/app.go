package app

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

const (
	// optionalWait is how long serving waits for sources that are not required.
	optionalWait = 10 * time.Second
	// drain is how long streams and requests may take to end at a stop.
	drain = 5 * time.Second
	// folderWait bounds the wait before a folder that is not there is looked for
	// again. Nobody is spared by a long one: the disk is our own.
	folderWait = 5 * time.Second
	// registryWait bounds the wait before a registry that failed is asked again.
	// It is asked every few seconds when all is well, so this spares it, and what
	// comes back is seen soon.
	registryWait = 10 * time.Second
)

// App is one Isthmus with its listeners bound. Make one with [New].
type App struct {
	log      *slog.Logger
	machine  machine
	store    records
	claims   source.Claims // of the sources in the store
	disk     *store.Disk   // nil if nothing survives a restart
	fleet    *fleet
	ranking  ranking
	gate     *catalog.Gate
	engine   *push.Engine
	services *push.Producer // of what the catalog holds
	xds      *xds.Server    // nil if it is not configured
	istio    *istioOutput
	admin    *admin.Server
	reloader *reloader
	primed   chan struct{} // holds a token when another source has been listed
	stopping atomic.Bool

	xdsListener, adminListener net.Listener
}

// New puts an Isthmus together and binds its listeners. It serves nothing until
// [App.Run], which must follow.
func New(ctx context.Context, c *config.Config, version string, log *slog.Logger) (*App, error) {
	return assemble(ctx, c, version, log, thisMachine())
}

// assemble is the list of the parts. What was begun is undone if one of them
// cannot be made.
func assemble(ctx context.Context, c *config.Config, version string, log *slog.Logger, m machine) (_ *App, err error) {
	a := &App{log: log, machine: m, claims: m.claims, primed: make(chan struct{}, 1)}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	timed := newStages(metrics)
	if err := a.openStore(ctx, c, metrics); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.abandon()
		}
	}()
	a.offerSources(c)
	a.engine = push.New(push.Config{
		Order: xds.Order(), Frame: xds.Frame, Sent: timed.sent("xds"), Accepted: timed.accepted("xds"),
		Log: a.log.With("output", "xds"),
	})
	a.services = a.engine.Produce(envoy.Types(debounceOf(c)))
	a.gate = a.newGate(c, timed)
	if err := errors.Join(a.offerXDS(c, version, metrics), a.offerIstio(c, timed, metrics)); err != nil {
		return nil, err
	}
	if a.admin, err = a.newAdmin(c.Admin, metrics); err != nil {
		return nil, err
	}
	if a.xdsListener, a.adminListener, err = m.listen(ctx, c); err != nil {
		return nil, err
	}
	return a, nil
}

// abandon undoes what assemble began.
func (a *App) abandon() {
	if a.gate != nil {
		a.gate.Stop()
	}
	a.istio.stop()
	a.closeDisk()
}

// offerSources makes the sources, and what follows the configuration of them.
func (a *App) offerSources(c *config.Config) {
	a.fleet = &fleet{supervise: func(s config.Source) *source.Supervisor { return a.supervise(c, s) }}
	for _, s := range c.Sources {
		a.fleet.add(s)
	}
	a.ranking.set(names(c))
	a.reloader = newReloader(a, c)
}

// newGate makes the gate behind the catalog, which tells every output.
func (a *App) newGate(c *config.Config, timed *stages) *catalog.Gate {
	required, optional := requirements(c)
	return catalog.NewGate(required, optional, optionalWait, func(s *catalog.Snapshot, change catalog.Change, complete bool) {
		a.services.Publish(envoy.Step(s, change, complete, c.RootNamespace))
		a.istio.publish(s, change, complete)
		timed.merged(change)
	})
}

// supervise makes the source that an entry of the configuration describes.
func (a *App) supervise(c *config.Config, s config.Source) *source.Supervisor {
	for _, warning := range s.Warnings() {
		a.log.Warn("the source is read insecurely", "source", s.Name, "warning", warning)
	}
	settings := source.Config{
		Kind: s.Kind(), Origin: c.Instance, Hold: s.Hold, Log: a.log, Restored: a.restoredAt(), MaxBackoff: registryWait,
	}
	if s.File != nil {
		settings.MaxBackoff = folderWait
	}
	reader := a.machine.reader(configured{
		Source: s, instance: c.Instance, log: a.log.With("source", s.Name),
		stored: func() iter.Seq[model.Record] { return a.store.List(model.Filter{Source: s.Name}) },
	})
	return source.NewSupervisor(s.Name, reader, a.store, settings)
}

// XDSAddr is the address of the output xds; nil if it is not configured.
func (a *App) XDSAddr() net.Addr {
	if a.xdsListener == nil {
		return nil
	}
	return a.xdsListener.Addr()
}

// AdminAddr is the address of the admin API.
func (a *App) AdminAddr() net.Addr { return a.adminListener.Addr() }

// Run serves until ctx ends, then drains: readiness goes first, streams are
// told to go elsewhere, and what is under way may finish.
func (a *App) Run(ctx context.Context) error {
	defer a.gate.Stop()
	defer a.istio.stop()
	parts, ctx := errgroup.WithContext(ctx)
	saved := a.save(ctx)
	a.fleet.launch = parts.Go
	a.fleet.startAll(ctx)
	parts.Go(func() error { return unlessStopped(ctx, a.merge(ctx)) })
	parts.Go(func() error { a.engine.Run(ctx); return nil })
	if a.xds != nil {
		parts.Go(func() error { return a.xds.Serve(a.xdsListener) })
	}
	a.istio.launch(ctx, parts.Go)
	parts.Go(func() error { return a.admin.Serve(a.adminListener) })
	a.reloader.launch(ctx, parts.Go)
	parts.Go(func() error { return a.stop(ctx) })

	a.log.Info("serving", "xds", addressOf(a.xdsListener), "admin", a.AdminAddr().String())
	return errors.Join(parts.Wait(), saved())
}

// stop waits for the end and ends what does not end by itself.
func (a *App) stop(ctx context.Context) error {
	<-ctx.Done()
	a.stopping.Store(true)
	a.log.Info("stopping")
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if a.xds != nil {
		a.xds.Stop(limit)
	}
	a.admin.Stop(limit)
	return nil
}

func addressOf(l net.Listener) string {
	if l == nil {
		return "off"
	}
	return l.Addr().String()
}

func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
