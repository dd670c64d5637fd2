package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/source"
)

// question is a source with an unknown relation.
type question struct {
	reason string // why the relation is unknown
	// replaced means that the source has had other settings in this process. Its stored
	// records may come from those settings, and so from the written API server.
	replaced bool
}

// decide repeatedly determines which uncertain sources read the API server that is written
// to, until all are certain or ctx ends. A written object is harder to revert than one that
// is not written yet.
func (b *branch) decide(ctx context.Context, log *slog.Logger) {
	pauses := wait.Backoff{Min: askLimit / 2, Max: 10 * askLimit}
	for failures := 1; b.asks(); failures++ {
		// Cases: the pause is over; the asked sources may have changed; ctx ends.
		select {
		case <-time.After(pauses.After(failures, rand.Float64())): //nolint:gosec // only spreads the tries
		case <-b.changed:
			failures = 0
		case <-ctx.Done():
			return
		}
		for _, one := range b.find(ctx) {
			if b.settle(&one) {
				one.report(log)
			}
		}
	}
}

// find determines the relations of the uncertain sources. A source that no longer reads an
// API server reads another system.
func (b *branch) find(ctx context.Context) []related {
	undecided := b.undecided()
	found := b.target.relate(ctx, undecided)
	for _, s := range undecided {
		if _, reads := s.Settings.(source.APIServer); !reads {
			found = append(found, related{name: s.Name, read: s.Settings, relation: other})
		}
	}
	return found
}

// start notes the relation of a source at the start, and logs an unknown one.
func (b *branch) start(one *related, log *slog.Logger) {
	switch {
	case one.relation == other && one.err != nil:
		b.assumed = append(b.assumed, one.reason())
	case b.settle(one):
		one.report(log)
	}
}

// report logs the relation of a source.
func (r *related) report(log *slog.Logger) {
	log = log.With("source", r.name)
	switch r.relation {
	case unknown:
		log.Warn("it is unknown whether the source reads the cluster that is written to: its services are not written, and written objects of it stay; "+
			"correct the error, or name the sources to write", "err", r.err)
	case same:
		log.Info("the source reads the cluster that is written to: its services are not written")
	case other:
		log.Info("the source reads another cluster than the written one: its services are written")
	}
}

// reasons returns the reasons of the unknown relations.
func (b *branch) reasons() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.asked)) {
		if reason := b.asked[name].reason; reason != "" {
			list = append(list, "it is unknown whether it reads the written cluster: "+reason)
		}
	}
	return list
}

// asks reports whether any source is uncertain.
func (b *branch) asks() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked) > 0
}

// undecided returns the uncertain sources.
func (b *branch) undecided() []config.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.entries), func(s config.Source) bool {
		_, asked := b.asked[s.Name]
		return !asked
	})
}

// settle applies the relation of a source, unless it has other settings by now. It reports
// whether the result is new.
func (b *branch) settle(one *related) (is bool) {
	is, decided := b.take(one, b.renewed(config.Source{Name: one.name, Settings: one.read}))
	if decided {
		b.require()
		b.term.renew()
	}
	return is
}

// take is the part of settle under the lock. renewed reports that no records of other
// settings are stored.
func (b *branch) take(one *related, renewed bool) (is, decided bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, asked := b.asked[one.name]
	entry, ok := find(b.entries, one.name)
	if !asked || !ok || any(entry.Settings) != any(one.read) {
		return false, false
	}
	switch reason := one.reason(); {
	case one.relation == unknown:
		is, q.reason = q.reason != reason, reason
		b.asked[one.name] = q
		return is, false
	case one.relation == other && q.replaced && !renewed:
		return false, false
	case one.relation == other && reason != "":
		b.assumed = append(b.assumed, reason)
	}
	delete(b.asked, one.name)
	b.sources = b.sources.with(one.name, one.relation)
	b.version++
	return true, true
}

// reason returns why the relation of a source is unknown, or assumed.
func (r *related) reason() string {
	if r.err == nil {
		return ""
	}
	return fmt.Sprintf("source %s: %s", r.name, r.err)
}

// reconsider resets the questions of sources with other settings in a new configuration.
// The caller holds the lock.
func (b *branch) reconsider(entries []config.Source) {
	for _, s := range entries {
		_, asked := b.asked[s.Name]
		if was, runs := find(b.entries, s.Name); asked && (!runs || !reflect.DeepEqual(was.Settings, s.Settings)) {
			b.asked[s.Name] = question{replaced: true}
		}
	}
}

// keeps reports whether a source, which is new or reads another API server than before, may
// run beside the outputs of the branch.
func (b *branch) keeps(ctx context.Context, s config.Source) bool {
	now := b.selection().relation(s.Name)
	if b.target.APIServer == nil || now == unknown {
		return true // records of unknown sources do not pass before the relation is known
	}
	found := other
	for _, one := range b.target.relate(ctx, []config.Source{s}) {
		found = one.relation
	}
	return found == now
}
