package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/store"
)

// OptionalWait is [Machine.OptionalWait] on this machine.
const OptionalWait = 10 * time.Second

// App is one Isthmus with its listeners bound. Make one with [New].
type App struct {
	parts
	once     bool     // everything is read once, and nothing is served or written
	self     string   // the name of this Isthmus in paths
	leftover []leaver // stored sources that are not configured, and wait for others
	trust    trust
	admin    *admin.Server
	reloader *reloader

	listeners     []net.Listener // of all parts
	adminListener net.Listener
	stopping      atomic.Bool
}

// parts are the parts of the data path, which a reload changes.
type parts struct {
	log       *slog.Logger
	machine   Machine
	memory    *budget.Budget // of all sources, for reading registries
	store     Records
	disk      *store.Disk // nil if nothing survives a restart
	fleet     *fleet
	branches  []*branch // the first takes all sources
	outputs   []namedOutput
	faults    *faults
	lookout   *lookout
	events    *events.Log
	exposures *exposures
}

// New puts an Isthmus together and binds its listeners. It serves nothing until
// [App.Run], which must follow.
func New(ctx context.Context, c *config.Config, version string, log *slog.Logger) (*App, error) {
	return assemble(ctx, c, version, log, thisMachine(), false)
}

// NewOn is [New] on another machine.
func NewOn(ctx context.Context, c *config.Config, version string, log *slog.Logger, m Machine) (*App, error) {
	return assemble(ctx, c, version, log, m, false)
}

// assemble makes the parts, in the order of the data path. If a part cannot be made, it
// undoes the previous ones.
func assemble(ctx context.Context, c *config.Config, version string, log *slog.Logger, m Machine, once bool) (_ *App, err error) {
	a := &App{once: once, parts: parts{log: log, faults: newFaults(log), machine: m, memory: budget.OfProcess(), lookout: newLookout(), events: events.New(), exposures: newExposures(log)}}
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
	a.self = selfOf(c, log)
	if a.trust, err = openTrust(c.Identity, c.RootNamespace, a.events, log); err != nil {
		return nil, err
	}
	if !once { // the command that reads once prints them
		a.exposures.look(*c)
	}
	a.openSources(c)
	a.branches = []*branch{newBranch(selection{}, c, nil, m.OptionalWait)}
	first := a.branches[0]
	first.merged, first.faults, first.lookout = timed.merged, a.faults, a.lookout
	if err := a.openOutputs(ctx, c, version, timed); err != nil {
		return nil, err
	}
	a.reloader = newReloader(a.parts, c)
	if err := a.openAdmin(ctx, c.Admin, version, metrics); err != nil {
		return nil, err
	}
	return a, nil
}

// abandon undoes the work of assemble.
func (a *App) abandon() {
	a.stopGates()
	for _, l := range a.listeners {
		_ = l.Close()
	}
	a.closeDisk()
}

func (a *App) stopGates() {
	for _, b := range a.branches {
		b.gate.Stop()
	}
}

// openSources makes the sources.
func (a *App) openSources(c *config.Config) {
	a.fleet = &fleet{opener: opener{
		instance: c.Instance, identity: a.trust.verifier, self: a.self, once: a.once,
		log: a.log, memory: a.memory, store: a.store, disk: a.disk, lookout: a.lookout, events: a.events,
	}}
	for _, s := range c.Sources {
		a.fleet.add(s)
	}
	a.fleet.leave(a.leftover)
}

// AdminAddr returns the address of the admin API.
func (a *App) AdminAddr() net.Addr { return a.adminListener.Addr() }

// Run serves until ctx ends, then drains: readiness ends first, clients are sent elsewhere,
// and work in progress may finish.
func (a *App) Run(ctx context.Context) error {
	defer a.stopGates()
	parts, ctx := errgroup.WithContext(ctx)
	saved := a.save(ctx)
	a.read(ctx, parts)
	a.trust.run(ctx, parts.Go)
	var delivering sync.WaitGroup
	for _, o := range a.outputs {
		delivering.Add(1)
		parts.Go(func() error {
			defer delivering.Done()
			return o.Run(ctx)
		})
	}
	parts.Go(func() error { return a.admin.Serve(a.adminListener) })
	a.reloader.launch(ctx, parts.Go)
	parts.Go(func() error { return a.stop(ctx, delivering.Wait) })

	a.log.Info("serving", a.addresses()...)
	return errors.Join(parts.Wait(), saved())
}

// read starts the sources and the branches that merge them.
func (a *App) read(ctx context.Context, parts *errgroup.Group) {
	a.fleet.launch = parts.Go
	a.fleet.startAll(ctx)
	all := a.reloader.running
	all.Sources = a.fleet.entries() // including the leaving sources
	for _, b := range a.branches {
		b.merger.Arrange(b.orderOf(&all))
		parts.Go(func() error { return unlessStopped(ctx, b.merge(ctx, a.store)) })
		parts.Go(func() error { b.decide(ctx, a.log); return nil })
	}
}

// adminDrain is how long requests to the admin API may take after the outputs have drained.
const adminDrain = 500 * time.Millisecond

// stop waits for the end of ctx. Readiness reports that the process is stopping while the
// outputs drain; then the admin API ends.
func (a *App) stop(ctx context.Context, drained func()) error {
	<-ctx.Done()
	a.stopping.Store(true)
	a.log.Info("stopping")
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), output.Drain+adminDrain)
	defer cancel()
	drained()
	a.admin.Stop(limit)
	return nil
}

// addresses returns the listen addresses as log attributes.
func (a *App) addresses() (list []any) {
	for kind, r := range a.reports {
		if r.Addr != nil {
			list = append(list, kind, r.Addr.String())
		}
	}
	return append(list, "admin", a.AdminAddr().String())
}

func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
