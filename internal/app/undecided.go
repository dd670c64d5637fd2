package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/output"
)

// decide finds out of the sources of which it is not known whether they read the API
// server that is written to, one time after the other, until it is known of all or ctx
// ends. What is written is harder to take back than what is not written yet.
func (b *branch) decide(ctx context.Context, log *slog.Logger) {
	pauses := wait.Backoff{Min: askLimit / 2, Max: 10 * askLimit}
	for failures := 1; ; failures++ {
		if len(b.selection().unknown) == 0 || !wait.Sleep(ctx, pauses.After(failures, rand.Float64())) { //nolint:gosec // only spreads the tries
			return
		}
		for _, one := range relate(ctx, b.written, b.undecided()) {
			if one.relation == unknown || !b.settle(one) {
				continue
			}
			log.Info("it is known now whether the source reads the API server that is written to", "source", one.name, "written", one.relation == other)
			warnOf(log, one)
		}
	}
}

// warnOf says what is not certain of a source, and what to do.
func warnOf(log *slog.Logger, one related) {
	switch {
	case one.err == nil:
	case one.relation == unknown:
		log.Warn("it cannot be found out whether the source reads the API server that is written to, so its services are not written, and what was written of them stays; "+
			"correct that, or name the sources to write", "source", one.name, "err", one.err)
	default:
		log.Warn("it is not certain whether the source reads the API server that is written to; correct that, or name the sources to write",
			"source", one.name, "err", one.err)
	}
}

// undecided are the sources of which nothing passes yet.
func (b *branch) undecided() []config.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.entries), func(s config.Source) bool { return b.sources.relation(s.Name) != unknown })
}

// settle takes over how a source is related to what is written, unless it has other
// settings by now.
func (b *branch) settle(one related) bool {
	b.mu.Lock()
	at := slices.IndexFunc(b.entries, func(s config.Source) bool { return s.Name == one.name })
	current := at >= 0 && any(b.entries[at].Settings) == any(one.read) && b.sources.relation(one.name) == unknown
	if current {
		b.sources = b.sources.with(one.name, one.relation)
		b.version++
	}
	b.mu.Unlock()
	if current {
		b.require()
		b.order.renew()
	}
	return current
}

// targetOf is an output as what its sources are compared with; false if they are not.
func targetOf(settings output.Settings, b *branch) (target, bool) {
	written, writes := settings.(output.APIServer)
	return target{written, b}, writes && !isSelective(settings)
}
