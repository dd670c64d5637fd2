package app

import (
	"context"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

// opener makes sources of entries of the configuration.
type opener struct {
	instance, self string
	identity       *identity.Verifier
	once           bool // everything is read once

	log     *slog.Logger
	memory  *budget.Budget
	store   Records
	disk    *store.Disk // nil if nothing survives a restart
	lookout *lookout
	events  *events.Log
}

// supervise makes the source that an entry describes.
func (o opener) supervise(s config.Source) *supervise.Supervisor {
	for _, warning := range s.Warnings() {
		o.log.Warn("the source is read insecurely", "source", s.Name, "warning", warning)
	}
	open := s.Settings.Open
	if dialled, ok := s.Settings.(interface { // peers may dial the source, and prove who they are
		OpenProven(env source.Env, by *identity.Verifier) source.Source
	}); ok {
		open = func(env source.Env) source.Source { return dialled.OpenProven(env, o.identity) }
	}
	opened := open(source.Env{
		Instance: o.instance, Self: o.self, Name: s.Name, Once: o.once, Log: o.log.With("source", s.Name), Memory: o.memory.Share(s.Name),
		Stored: func() iter.Seq[model.Record] { return o.store.List(model.Filter{Source: s.Name}) },
	})
	return supervise.New(s.Name, opened, o.store, supervise.Config{
		Kind: s.Kind, Hold: s.Hold, Only: s.Only, LocalAddresses: s.LocalAddresses, Network: s.Network, Log: o.log, Restored: restoredAt(o.disk, s.Name), MaxBackoff: s.MaxBackoff, Edited: s.Edited, Listed: o.lookout.look, Events: o.events,
	})
}

// fleet is the running sources: the configured ones, in their order, and the leaving ones.
// One goroutine changes it, any goroutine may read it.
type fleet struct {
	opener
	launch func(run func() error) // a goroutine of the application

	mu      sync.Mutex // guards members and their fields; never held across a wait
	members []*member
}

// member is one source.
type member struct {
	entry      config.Source
	supervisor *supervise.Supervisor
	supervised source.Settings    // the settings that the supervisor has
	stop       context.CancelFunc // nil until started
	ended      chan struct{}      // closed once the supervisor has returned

	// leaving sources are in no configuration. They are still read: as long as their records
	// are served, the records have to be current.
	leaving   bool
	departure departure
	recorded  *model.Departure // the departure in the store; nil if unknown
}

// add adds a source, which does not run yet.
func (f *fleet) add(entry config.Source) {
	m := &member{entry: entry, supervisor: f.supervise(entry), supervised: entry.Settings}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, m)
}

// addMissing adds the missing sources: a source that was leaving may stay.
func (f *fleet) addMissing(entries []config.Source) {
	present := f.names()
	for _, entry := range entries {
		if !slices.Contains(present, entry.Name) {
			f.add(entry)
		}
	}
}

// startAll starts the sources that do not run.
func (f *fleet) startAll(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.stop == nil {
			f.start(ctx, m)
		}
	}
}

func (f *fleet) start(ctx context.Context, m *member) {
	ctx, stop := context.WithCancel(ctx)
	ended, supervisor := make(chan struct{}), m.supervisor
	m.stop, m.ended = stop, ended
	f.launch(func() error {
		defer close(ended)
		defer stop()
		return supervisor.Run(ctx)
	})
}

// halt stops a source and returns once it has stopped, its records untouched.
func (f *fleet) halt(m *member) {
	f.mu.Lock()
	stop, ended := m.stop, m.ended
	f.mu.Unlock()
	if stop != nil {
		stop()
		<-ended
	}
}

// restart gives a source other settings. Its records stay until it has been listed with
// them.
func (f *fleet) restart(ctx context.Context, m *member, entry config.Source) {
	f.halt(m)
	next := f.supervise(entry)
	_ = next.Succeed(ctx, m.supervisor) // fails only with ctx
	f.mu.Lock()
	defer f.mu.Unlock()
	m.entry, m.supervisor, m.supervised = entry, next, entry.Settings
	f.start(ctx, m)
}

// follow applies the wanted sources. Others leave, once the added ones have been listed. It
// returns the sources that must be restarted, with their new settings.
func (f *fleet) follow(wanted, added []config.Source) map[*member]config.Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	restart := map[*member]config.Source{}
	for _, m := range f.members {
		entry, ok := find(wanted, m.entry.Name)
		if !ok {
			m.leaving = true
			m.departure.onlyAmong(wanted, added)
			continue
		}
		m.leaving, m.departure = false, departure{}
		m.supervisor.Depart(nil)
		if !sameSettings(m.entry, entry) || m.halted() {
			restart[m] = entry
		}
		m.entry = entry
	}
	return restart
}

// halted reports whether a source was stopped, such as a source that could not leave.
func (m *member) halted() bool {
	if m.ended == nil {
		return false
	}
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

func find(entries []config.Source, name string) (config.Source, bool) {
	i := slices.IndexFunc(entries, func(s config.Source) bool { return s.Name == name })
	if i < 0 {
		return config.Source{}, false
	}
	return entries[i], true
}

// entries returns the configured sources, and the leaving ones with their last settings.
func (f *fleet) entries() (list []config.Source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		list = append(list, m.entry)
	}
	return list
}

// arrange puts the sources in an order that names all of them.
func (f *fleet) arrange(order []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.SortStableFunc(f.members, func(a, b *member) int {
		return slices.Index(order, a.entry.Name) - slices.Index(order, b.entry.Name)
	})
}

// due returns the leaving sources with successors that have all been listed.
func (f *fleet) due(shown func(source string) bool) map[*member]departure {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := map[*member]departure{}
	for _, m := range f.members {
		if m.leaving && len(f.awaited(m, shown)) == 0 {
			due[m] = m.departure
		}
	}
	return due
}

// awaited names the sources that a leaving one waits for. Records visible to clients are
// not enough: a source that was leaving and is wanted again keeps its old records until it
// has been listed with its current settings.
func (f *fleet) awaited(m *member, shown func(source string) bool) []string {
	return slices.DeleteFunc(slices.Clone(m.departure.waits), func(name string) bool {
		at := slices.IndexFunc(f.members, func(o *member) bool { return o.entry.Name == name })
		return shown(name) && (at < 0 || !f.members[at].supervisor.Status().LastListing.IsZero())
	})
}

// keep holds a leaving source for now, unless it is wanted again.
func (f *fleet) keep(m *member, d supervise.HeldStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.departure.since, m.departure.held = d.Since, d.Held
	m.supervisor.Depart(&d)
}

func (f *fleet) drop(gone *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m == gone })
	if gone.departure.gone != nil {
		close(gone.departure.gone)
	}
}

// release records an operator's decision that a source leaves. It returns a channel that is
// closed once its records are gone, and their number.
func (f *fleet) release(m *member) (gone <-chan struct{}, records int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &m.departure
	if d.gone == nil {
		d.gone = make(chan struct{})
	}
	d.released = true
	return d.gone, d.held
}

// names returns the names of all sources, in order.
func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]string, len(f.members))
	for i, m := range f.members {
		list[i] = m.entry.Name
	}
	return list
}

// supervisors returns the supervisors of all sources, in order.
func (f *fleet) supervisors() []*supervise.Supervisor {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*supervise.Supervisor, len(f.members))
	for i, m := range f.members {
		list[i] = m.supervisor
	}
	return list
}

// supervisor returns the supervisor of a source; nil if there is none of that name.
func (f *fleet) supervisor(name string) *supervise.Supervisor {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.entry.Name == name {
			return m.supervisor
		}
	}
	return nil
}

// hasRenewed reports whether a source was listed with its settings, and only listed records
// of it are stored.
func (f *fleet) hasRenewed(entry config.Source) bool {
	f.mu.Lock()
	at := slices.IndexFunc(f.members, func(m *member) bool {
		return m.entry.Name == entry.Name && reflect.DeepEqual(m.supervised, entry.Settings)
	})
	var s *supervise.Supervisor
	if at >= 0 {
		s = f.members[at].supervisor
	}
	f.mu.Unlock()
	if s == nil {
		return false
	}
	status := s.Status()
	return !status.LastListing.IsZero() && status.Held == 0
}

// Offer implements [source.Judge]: the supervisor of a source takes the baselines of other
// systems.
func (f *fleet) Offer(ctx context.Context, b source.Baseline) error {
	if s := f.supervisor(b.Source); s != nil {
		return s.Offer(ctx, b)
	}
	return nil // the source has left
}

// leaving lists the leaving sources, with the sources that they wait for.
func (f *fleet) leaving(shown func(source string) bool) []admin.Leaving {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []admin.Leaving{}
	for _, m := range f.members {
		if m.leaving {
			list = append(list, admin.Leaving{Source: m.entry.Name, WaitsFor: append([]string{}, f.awaited(m, shown)...), Held: !m.departure.since.IsZero()})
		}
	}
	return list
}

// states returns the states of all sources, in order.
func (f *fleet) states() (list []source.Status) {
	for _, s := range f.supervisors() {
		list = append(list, s.Status())
	}
	return list
}
