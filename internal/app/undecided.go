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

// unsaidLimit is how long nothing of a source passes while an API server answers that it
// does not say which cluster it is of. One that starts denies everybody everything until
// it has read who may do what. That takes seconds, and longer the more there is to read.
// One that denies it for a minute is taken for one that never allows it. It is asked on
// all the same.
const unsaidLimit = time.Minute

// question is what there is to know of a relation that is not certain.
type question struct {
	unsaid time.Time // since when it is, time after time; zero if it is not
	// replaced says that the source has had other settings in this process. What is stored
	// of it may be of what these read, which may be what is written.
	replaced bool
}

// decide finds out of the sources of which it is not certain whether they read the API
// server that is written to, one time after the other, until it is certain of all or ctx
// ends. What is written is harder to take back than what is not written yet.
func (b *branch) decide(ctx context.Context, log *slog.Logger) {
	pauses := wait.Backoff{Min: askLimit / 2, Max: 10 * askLimit}
	for failures := 1; ; failures++ {
		if !b.asks() {
			return
		}
		// Cases: it is time to ask again; what is asked for may have changed; the end.
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

// find finds out how the sources of which it is not certain are related to what is
// written. One that reads no API server any more reads something else.
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

// report says what is taken for the relation of a source now.
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

// warnOf says what is not certain of a source, and what to do.
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

// asks reports whether there is a source of which it is not certain.
func (b *branch) asks() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked) > 0
}

// undecided are the sources of which it is not certain.
func (b *branch) undecided() []config.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.entries), func(s config.Source) bool {
		_, asked := b.asked[s.Name]
		return !asked
	})
}

// settle takes over how a source is related to what is written, unless it has other
// settings by now. It reports whether that says anything new.
func (b *branch) settle(one *related) bool {
	is, moved := b.take(one, b.renewed(config.Source{Name: one.name, Settings: one.read}))
	if moved {
		b.require()
		b.term.renew()
	}
	return is
}

// take is the part of settle under the lock. A source that passes because its relation was
// unsaid for so long is asked for on. Renewed says that nothing is stored of other settings.
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

// after is the question once there was another answer.
func (q question) after(answer relation) question {
	switch {
	case answer != unsaid:
		q.unsaid = time.Time{}
	case q.unsaid.IsZero():
		q.unsaid = time.Now()
	}
	return q
}

// reconsider looks at the sources of another configuration. What was said of other settings
// does not count for one that has new ones. The caller has the lock.
func (b *branch) reconsider(entries []config.Source) {
	for _, s := range entries {
		_, asked := b.asked[s.Name]
		if was, runs := find(b.entries, s.Name); asked && (!runs || !reflect.DeepEqual(was.Settings, s.Settings)) {
			b.asked[s.Name] = question{replaced: true}
		}
	}
}

// targetOf is an output as what its sources are compared with; false if they are not.
func targetOf(settings output.Settings, b *branch) (target, bool) {
	written, writes := settings.(output.APIServer)
	return target{written, b}, writes && !isSelective(settings)
}
