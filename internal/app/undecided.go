package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// unsaidLimit is how long a source waits while an API server answers without identifying
// its cluster. A starting API server rejects every request until it has read its roles.
// That takes seconds, and longer the more roles there are. A rejection for a minute counts
// as permanent. The API server is still asked afterwards.
const unsaidLimit = time.Minute

// question is the state of a relation that is not certain.
type question struct {
	unsaid time.Time // since when every answer lacked the cluster; zero if the last one had it
	// replaced means that the source has had other settings in this process. Its stored
	// records may come from those settings, and so from the written API server.
	replaced bool
}

// decide repeatedly determines which uncertain sources read the API server that is written
// to, until all are certain or ctx ends. A written object is harder to revert than one that
// is not written yet.
func (b *branch) decide(ctx context.Context, log *slog.Logger) {
	pauses := wait.Backoff{Min: askLimit / 2, Max: 10 * askLimit}
	for failures := 1; ; failures++ {
		if !b.asks() {
			return
		}
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
	found := relate(ctx, b.written, undecided)
	for _, s := range undecided {
		if _, reads := s.Settings.(source.APIServer); !reads {
			found = append(found, related{name: s.Name, read: s.Settings, relation: other})
		}
	}
	return found
}

// report logs the relation of a source now in effect.
func (r *related) report(log *slog.Logger) {
	switch {
	case r.err != nil:
		warnOf(log, *r)
	case r.relation == same && r.before == other:
		log.Warn("the source reads the API server that is written to, which did not say so before: what was written of it is taken away", "source", r.name)
	default:
		log.Info("it is known now whether the source reads the API server that is written to", "source", r.name, "written", r.relation == other)
	}
}

// warnOf logs why the relation of a source is uncertain, and the fix.
func warnOf(log *slog.Logger, one related) {
	switch {
	case one.err == nil:
	case one.relation == unknown:
		log.Warn("it cannot be found out whether the source reads the API server that is written to, so its services are not written, and what was written of them stays; "+
			"correct that, or name the sources to write", "source", one.name, "err", one.err)
	case one.relation == unsaid:
		log.Warn("it is not certain whether the source reads the API server that is written to, so its services are not written for now, and what was written of them stays; "+
			"they are written if nothing else is said for some time; correct that, or name the sources to write", "source", one.name, "for", unsaidLimit, "err", one.err)
	default:
		log.Warn("it is not certain whether the source reads the API server that is written to, and its services are written; correct that, or name the sources to write",
			"source", one.name, "err", one.err)
	}
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
func (b *branch) settle(one *related) bool {
	is, moved := b.take(one, b.renewed(config.Source{Name: one.name, Settings: one.read}))
	if moved {
		b.require()
		b.term.renew()
	}
	return is
}

// take is the part of settle under the lock. A source that passes after the limit is still
// asked. renewed reports that no records of other settings are stored.
func (b *branch) take(one *related, renewed bool) (is, moved bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, asked := b.asked[one.name]
	entry, ok := find(b.entries, one.name)
	if !asked || !ok || any(entry.Settings) != any(one.read) {
		return false, false
	}
	one.before = b.sources.relation(one.name)
	q = q.after(one.relation)
	b.asked[one.name] = q
	waits := q.replaced && !renewed
	switch {
	case one.relation == same, one.relation == other && !waits:
		delete(b.asked, one.name)
	case one.relation == unsaid && one.before == unknown && !waits && time.Since(q.unsaid) >= b.patience:
		one.relation = other
	default:
		return false, false
	}
	if moved = one.relation != one.before; moved {
		b.sources = b.sources.with(one.name, one.relation)
		b.version++
	}
	return true, moved
}

// after returns the question after another answer.
func (q question) after(answer relation) question {
	switch {
	case answer != unsaid:
		q.unsaid = time.Time{}
	case q.unsaid.IsZero():
		q.unsaid = time.Now()
	}
	return q
}

// reconsider resets the questions of sources with other settings in a new configuration:
// earlier answers do not count. The caller holds the lock.
func (b *branch) reconsider(entries []config.Source) {
	for _, s := range entries {
		_, asked := b.asked[s.Name]
		if was, runs := find(b.entries, s.Name); asked && (!runs || !reflect.DeepEqual(was.Settings, s.Settings)) {
			b.asked[s.Name] = question{replaced: true}
		}
	}
}

// targetOf returns the target that an output's sources are compared with; false if it has
// none.
func targetOf(settings output.Settings, b *branch) (target, bool) {
	written, writes := settings.(output.APIServer)
	return target{written, b}, writes && !isSelective(settings)
}
