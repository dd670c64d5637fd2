package app

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/source"
)

// Reloading says what an application follows while it runs.
type Reloading struct {
	// File is the configuration file.
	File string
	// Now asks for the file to be read at once, such as by SIGHUP.
	Now <-chan os.Signal
	// Log is called when something else is to be logged; may be nil.
	Log func(config.Log)
}

// Reload makes [App.Run] follow the configuration file. It comes before Run.
func (a *App) Reload(r Reloading) { a.reloader.Reloading = r }

// reloader applies the configuration file, all of it or nothing.
// One goroutine runs it, anybody may look at it.
type reloader struct {
	Reloading
	app *App
	// running is what is in force: what cannot change is as at the start.
	running config.Config
	looked  bool // at the file, since the start

	mu     sync.Mutex // guards status
	status admin.Config
}

// removeAgain is how long a removal that the store rejected waits.
const removeAgain = time.Second

func newReloader(a *App, c *config.Config) *reloader {
	return &reloader{app: a, running: *c, status: admin.Config{
		State: admin.ConfigLoaded, Loaded: time.Now(), Problems: []string{}, NeedsRestart: []string{},
	}}
}

// launch starts following the file, if there is one.
func (r *reloader) launch(ctx context.Context, launch func(run func() error)) {
	if r.File == "" {
		return
	}
	changed := make(chan struct{}, 1)
	launch(func() error {
		r.app.machine.watch(ctx, r.File, r.app.log, func() {
			select {
			case changed <- struct{}{}:
			default: // the file will be read, and as it is by then
			}
		})
		return nil
	})
	launch(func() error { r.follow(ctx, changed); return nil })
}

// follow waits for: the end, another file, somebody who asks, the listing of
// another source, the time to try a removal again.
func (r *reloader) follow(ctx context.Context, changed <-chan struct{}) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			r.reload(ctx)
		case <-r.Now:
			r.reload(ctx)
		case <-r.app.primed:
		case <-again:
		}
		if again = nil; !r.removeDue(ctx) {
			again = time.After(removeAgain)
		}
	}
}

// reload reads the file and takes it over.
func (r *reloader) reload(ctx context.Context) {
	wanted, err := r.app.machine.load(r.File)
	if err != nil {
		r.failed(err)
		return
	}
	wanted, fixed := keepSelections(ctx, r.app.targets, &r.running, wanted)
	p := planFor(&r.running, wanted)
	p.NeedsRestart = append(p.NeedsRestart, fixed...)
	r.apply(ctx, p, wanted)
	r.running.Sources, r.running.Log = wanted.Sources, wanted.Log
	r.loaded(p)
}

// apply makes the application as a valid configuration wants it. What comes is
// awaited before it can come, and what goes is left to [reloader.removeDue].
func (r *reloader) apply(ctx context.Context, p plan, wanted *config.Config) {
	if p.Log && r.Log != nil {
		r.Log(wanted.Log)
	}
	a := r.app
	for _, b := range a.branches {
		b.follow(wanted)
	}
	restart := a.fleet.follow(wanted.Sources, p.Start)
	order := transition(a.fleet.names(), names(wanted))
	a.fleet.addMissing(p.Start)
	a.fleet.arrange(order)
	for _, b := range a.branches {
		b.order.set(b.those(order))
	}
	a.fleet.startAll(ctx)
	for m, entry := range restart {
		a.fleet.restart(ctx, m, entry)
	}
}

// removeDue removes the records of the sources that may leave. It reports
// false if that has to be tried again.
func (r *reloader) removeDue(ctx context.Context) (done bool) {
	done = true
	for _, m := range r.app.fleet.due(r.listed) {
		name := m.entry.Name
		r.app.fleet.halt(m)
		if err := source.Remove(ctx, r.app.store, r.app.claims, name); err != nil {
			done = ctx.Err() != nil
			r.app.log.Error("the records of a removed source stay for now", "source", name, "err", err)
			continue
		}
		r.app.fleet.drop(m)
		r.app.left(name)
		r.app.log.Info("source removed with its records", "source", name)
	}
	return done
}

// listed reports whether clients may see a source's records. That the store
// has them is not enough: they have to come before the removals do.
func (r *reloader) listed(name string) bool { return r.app.branches[0].gate.Snapshot().Primed(name) }

func problems(err error) []string { return strings.Split(err.Error(), "\n") }
