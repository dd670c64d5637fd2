package app

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// Reloading is the events that an application follows while it runs.
type Reloading struct {
	// File is the configuration file.
	File string
	// Now requests a read of the file at once, such as by SIGHUP.
	Now <-chan os.Signal
	// Log is called when the log settings change; may be nil.
	Log func(config.Log)
}

// Reload makes [App.Run] follow the configuration file. It comes before Run.
func (a *App) Reload(r Reloading) { a.reloader.Reloading = r }

// reloader applies the configuration file, all of it or nothing. One goroutine runs it, any
// goroutine may read it.
type reloader struct {
	Reloading
	parts
	// running is the configuration in force: fixed fields have their values of the start.
	running config.Config
	looked  bool           // whether the file was read since the start
	rested  time.Time      // when the next decision on departures may be made
	parting []config.Split // see [parting]

	mu     sync.Mutex // guards status
	status admin.Config
}

const (
	// removeAgain is the wait before a removal that the store rejected is retried.
	removeAgain = time.Second
	// lookShare bounds the processor time of decisions on departures: after each, the reloader
	// rests so many times as long.
	lookShare = 9
)

func newReloader(p parts, c *config.Config) *reloader {
	return &reloader{parts: p, running: *c, status: admin.Config{
		State: admin.ConfigLoaded, Loaded: time.Now(), Problems: []string{}, NeedsRestart: []string{},
		Sources: granted(c), Splits: Splits(c), Listen: c.Listeners(),
	}}
}

// launch starts following the file, if there is one, and the leaving sources.
func (r *reloader) launch(ctx context.Context, launch func(run func() error)) {
	changed := make(chan struct{}, 1)
	if r.File != "" {
		launch(func() error {
			r.machine.Watch(ctx, r.File, r.log, func() {
				select {
				case changed <- struct{}{}:
				default: // the file will be read, with its newest content
				}
			})
			return nil
		})
	}
	launch(func() error { r.follow(ctx, changed); return nil })
}

// Cases: ctx ends; the file changed; a read was requested; the departure of a source may be
// due for a decision; the time for the next decision.
func (r *reloader) follow(ctx context.Context, changed <-chan struct{}) {
	var again <-chan time.Time
	for {
		r.record(ctx)
		select {
		case <-ctx.Done():
			return
		case <-changed:
			r.reload(ctx)
		case <-r.Now:
			r.reload(ctx)
		case <-r.lookout.due:
		case <-again:
		}
		again = nil
		if next := r.removeDue(ctx); next > 0 {
			again = time.After(next)
		}
	}
}

// reload reads the file and applies it.
func (r *reloader) reload(ctx context.Context) {
	wanted, err := r.machine.Load(r.File)
	if err != nil {
		r.failed(err)
		return
	}
	wanted, fixed := keepSelections(ctx, r.branches, &r.running, wanted)
	p := planFor(&r.running, wanted)
	p.NeedsRestart = append(p.NeedsRestart, fixed...)
	r.apply(ctx, p, wanted)
	r.running.Sources, r.running.Splits, r.running.Log = wanted.Sources, wanted.Splits, wanted.Log
	r.loaded(p)
	r.exposures.look(*wanted)
}

// apply applies a valid configuration. The gates wait for new sources before these start,
// and removals are left to [reloader.removeDue].
func (r *reloader) apply(ctx context.Context, p plan, wanted *config.Config) {
	if p.Log && r.Log != nil {
		r.Log(wanted.Log)
	}
	for _, b := range r.branches {
		b.follow(wanted)
	}
	restart := r.fleet.follow(wanted.Sources, p.Start)
	order := transition(r.fleet.names(), names(wanted))
	r.fleet.addMissing(p.Start)
	r.fleet.arrange(order)
	r.parting = parting(slices.Concat(r.running.Splits, r.parting), wanted.Splits, func(source string) bool {
		return slices.Contains(r.fleet.names(), source) && !slices.Contains(names(wanted), source)
	})
	r.divide(wanted.Splits)
	r.fleet.startAll(ctx)
	for m, entry := range restart {
		r.fleet.restart(ctx, m, entry)
	}
}

// removeDue removes the records of the sources that may leave. It returns the longest time
// until the next call; zero if none is needed.
func (r *reloader) removeDue(ctx context.Context) (again time.Duration) {
	due := r.fleet.due(r.inView)
	r.lookout.judging.Store(len(due) > 0) // first: commits from here on request another call
	if wait := time.Until(r.rested); len(due) > 0 && wait > 0 {
		return wait
	}
	began := time.Now()
	for m, d := range due {
		leaves, in := r.judge(m, d)
		if leaves && r.remove(ctx, m) {
			continue
		}
		if leaves {
			in = removeAgain
		}
		again = soonest(again, in)
	}
	r.lookout.judging.Store(again > 0)
	r.rested = time.Now().Add(lookShare * time.Since(began))
	return soonest(again, r.endSplits())
}

// remove removes a source with its records. It reports false if that has to be retried.
func (r *reloader) remove(ctx context.Context, m *member) bool {
	name := m.entry.Name
	r.fleet.halt(m)
	if err := supervise.Remove(ctx, r.store, name); err != nil {
		r.log.Error("the records of a removed source stay for now", "source", name, "err", err)
		return ctx.Err() != nil
	}
	r.fleet.drop(m)
	r.left(name)
	r.events.Add(events.Event{Kind: events.Configuration, Source: name, Text: "removed with its records"})
	r.log.Info("source removed with its records", "source", name)
	return true
}

// soonest returns the earlier of two times from now; zero means none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// inView reports whether clients may see a source's records. Stored records are not enough:
// clients have to get them before the removals.
func (r *reloader) inView(name string) bool { return r.branches[0].gate.Snapshot().Primed(name) }

func problems(err error) []string { return strings.Split(err.Error(), "\n") }

// left notifies outputs that a source was removed from the configuration.
func (r *reloader) left(source string) {
	r.memory.Leave(source)
	for _, o := range r.outputs {
		if l, ok := o.Output.(output.SourceRemover); ok {
			l.RemoveSource(source)
		}
	}
}
