package app

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// departure is the progress of a source that leaves the configuration.
type departure struct {
	// waits are the sources that came with its leaving. It stays until they have been listed,
	// and until they have enough of its objects or the time for that has passed.
	waits []string
	// since is when the successors were found to lack too much; zero if they do not.
	since    time.Time
	held     int  // number of records, as last counted
	released bool // an operator has decided
	// gone is closed once its records are removed; nil without a waiting caller.
	gone chan struct{}
}

// leaver is a stored source that left the configuration before this process began.
type leaver struct {
	name  string
	waits []string
	since time.Time
	hold  hold.Config
}

// leaverOf returns a stored source that left earlier. It waits for the successors that are
// configured and for the sources never listed; for none if it may leave at once.
func leaverOf(name string, stored model.Departure, configured, unlisted []string) leaver {
	l := leaver{name: name, hold: hold.Default()}
	for _, successor := range slices.Concat(stored.Successors.Slice(), unlisted) {
		if slices.Contains(configured, successor) && !slices.Contains(l.waits, successor) {
			l.waits = append(l.waits, successor)
		}
	}
	if stored.Successors.Len() > 0 {
		l.hold = hold.Config{Share: stored.Share, Min: int(stored.Min), For: stored.For}
	}
	if slices.Equal(l.waits, stored.Successors.Slice()) {
		l.since = stored.Since
	}
	return l
}

// stored returns the departure as the mark of the source stores it.
func (m *member) stored() model.Departure {
	d, hold := m.departure, m.entry.Hold
	if !m.leaving || len(d.waits) == 0 {
		return model.Departure{}
	}
	return model.Departure{
		Successors: model.ListOf(d.waits...), Since: d.since.UTC().Round(0), // without the monotonic clock reading, which ends with the process
		Share: hold.Share, Min: uint32(min(hold.Min, math.MaxInt32)), For: hold.For, //nolint:gosec // it is not negative
	}
}

// unrecorded returns the sources with a departure that the store does not have yet.
func (f *fleet) unrecorded() map[*member]model.Departure {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := map[*member]model.Departure{}
	for _, m := range f.members {
		if d := m.stored(); m.recorded == nil || !m.recorded.Equal(d) {
			list[m] = d
		}
	}
	return list
}

// record stores the departures, so that they outlive this process.
func (r *reloader) record(ctx context.Context) {
	for m, d := range r.fleet.unrecorded() {
		stored, err := supervise.StoreDeparture(ctx, r.store, m.entry.Name, d)
		switch {
		case err != nil && ctx.Err() == nil:
			r.log.Warn("a restart would forget how far a source has come that leaves the configuration", "source", m.entry.Name, "err", err)
		case stored:
			r.fleet.recorded(m, d)
		}
	}
}

func (f *fleet) recorded(m *member, d model.Departure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.recorded = &d
}

// onlyAmong keeps the successors that are still wanted, and adds others. Another list
// restarts the time.
func (d *departure) onlyAmong(wanted, added []config.Source) {
	before := slices.Clone(d.waits)
	d.waits = slices.DeleteFunc(d.waits, func(name string) bool { _, stays := find(wanted, name); return !stays })
	for _, s := range added {
		d.waits = append(d.waits, s.Name)
	}
	if !slices.Equal(before, d.waits) {
		d.since = time.Time{}
	}
}

// judge decides whether a source with listed successors may leave; if not, in is the
// longest time until the next decision. A source removed by an operator without a successor
// leaves: that is the operator's decision.
func (r *reloader) judge(m *member, d departure) (leaves bool, in time.Duration) {
	if len(d.waits) == 0 || d.released {
		return true, 0
	}
	name, stored, now := m.entry.Name, r.store.List, time.Now()
	short := m.entry.Hold.Displace(hold.ObjectsOf(stored, name), hold.ObjectsOf(stored, d.waits...))
	began := d.since.IsZero()
	if began {
		d.since = now
	}
	until := d.since.Add(m.entry.Hold.For)
	if !short.Suspicious || !now.Before(until) {
		return true, 0
	}
	reason := fmt.Sprintf("it leaves the configuration; sources that came with that list %d of its %d %s (%s); "+
		"its records are served until %s, or until these list enough; to keep it, put it back into the configuration; if they are really gone, run: isthmus sources release %s",
		short.Of-short.Lost, short.Of, short.What, strings.Join(d.waits, ", "), until.UTC().Format(time.RFC3339), name)
	r.fleet.keep(m, supervise.HeldStatus{
		State: source.StateHeld, Reason: reason, Since: d.since, Held: recordsOf(r.store, name),
		Release: func(ctx context.Context) (int, error) { return r.release(ctx, m) },
	})
	if began {
		r.log.Warn("a source that leaves the configuration is held", "source", name, "reason", reason)
	}
	return false, until.Sub(now)
}

// recordsOf counts the records of a source, without those about the source itself.
func recordsOf(stored supervise.Lister, name string) (n int) {
	for rec := range stored.List(model.Filter{Source: name}) {
		if !rec.Kind.Reserved() {
			n++
		}
	}
	return n
}

// release lets a source leave on an operator's request, and waits for that.
func (r *reloader) release(ctx context.Context, m *member) (released int, err error) {
	gone, released := r.fleet.release(m)
	r.lookout.look()
	select {
	case <-gone:
		return released, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("release the records of source %s, which leaves the configuration: %w", m.entry.Name, context.Cause(ctx))
	}
}

// removed is the settings of a source that left the configuration before the process began,
// with successors that are not listed yet. Its old settings are unknown, so only its stored
// records remain.
type removed struct{}

var _ source.Settings = removed{}

// Validate implements [source.Settings].
func (removed) Validate() error { return nil }

// Resolve implements [source.Settings].
func (removed) Resolve(string) {}

// Check implements [source.Settings].
func (removed) Check() error { return nil }

// Warnings implements [source.Settings].
func (removed) Warnings() []string { return nil }

// Open implements [source.Settings].
func (removed) Open(source.Env) source.Source { return nothing{} }

// nothing is a source that never lists.
type nothing struct{}

// Run implements [source.Source].
func (nothing) Run(ctx context.Context, _ source.Sink) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// removedSource returns the entry of a removed source.
func removedSource(l leaver) config.Source {
	return config.Source{Name: l.name, Kind: "removed", Hold: l.hold, Settings: removed{}}
}

// leave adds the sources that left the configuration before this process began, and that
// wait for their successors.
func (f *fleet) leave(leavers []leaver) {
	for _, l := range leavers {
		f.add(removedSource(l))
		m := f.members[len(f.members)-1]
		m.leaving, m.departure.waits, m.departure.since = true, slices.Clone(l.waits), l.since
		if now := time.Now(); l.since.After(now) { // by another clock
			m.departure.since = now
		}
		m.supervisor.Depart(&supervise.HeldStatus{
			State: source.StateStale, Since: time.Now(),
			Reason: fmt.Sprintf("it is not in the configuration any more; its records are served until these have been listed: %s", strings.Join(l.waits, ", ")),
		})
	}
}

// parting returns the former splits that stay while a source of them leaves: without them,
// its last endpoints would get calls once more. Hosts that are still divided have no need of
// it.
func parting(former, wanted []config.Split, leaves func(source string) bool) []config.Split {
	return slices.DeleteFunc(slices.Clone(former), func(s config.Split) bool {
		divided := slices.ContainsFunc(wanted, func(w config.Split) bool { return w.Host == s.Host && w.Namespace == s.Namespace })
		return divided || !slices.ContainsFunc(s.Backends, func(b config.Backend) bool { return leaves(b.Source) })
	})
}

// divide merges all sources, also the leaving ones, with these splits and the parting ones.
func (r *reloader) divide(splits []config.Split) {
	merged := r.running // outputs keep their configuration of the start
	merged.Sources, merged.Splits = r.fleet.entries(), slices.Concat(splits, r.parting)
	for _, b := range r.branches {
		b.merger.Arrange(b.orderOf(&merged))
	}
}

// endSplits ends the parting splits of sources that clients no longer see. It returns the
// time until the next call; zero if the next departure of a source calls it.
func (r *reloader) endSplits() (again time.Duration) {
	seen := func(source string) bool {
		left := source != "" && !slices.Contains(r.fleet.names(), source)
		shown := left && slices.ContainsFunc(r.branches, func(b *branch) bool { return b.gate.Snapshot().Primed(source) })
		if shown {
			again = removeAgain
		}
		return shown || source != "" && !left && !slices.ContainsFunc(r.running.Sources, func(s config.Source) bool { return s.Name == source })
	}
	before := len(r.parting)
	r.parting = parting(r.parting, r.running.Splits, seen)
	if len(r.parting) < before {
		r.divide(r.running.Splits)
	}
	return again
}
