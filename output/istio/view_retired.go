package istio

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// isRetired reports whether the configuration no longer writes a kind. Objects that an
// earlier run wrote are deleted, regardless of their sources.
func (c Config) isRetired(kind Kind) bool { return !slices.Contains(c.kinds(), kind) }

// retired are the kinds that an earlier run may have written.
func (c Config) retired() []Kind {
	return slices.DeleteFunc([]Kind{ServiceEntry, WorkloadEntry, Sidecar}, func(kind Kind) bool { return !c.isRetired(kind) })
}

// missing is the first reason why a kind could not be listed. Nothing waits for a retired
// kind. Its rights may be missing, since no version has needed them, or the API server may
// not know it.
type missing struct {
	once  sync.Once
	known chan struct{} // closed with the first reason, or when the kind has been listed
	log   *slog.Logger
}

func newMissing(log *slog.Logger) *missing { return &missing{known: make(chan struct{}), log: log} }

func (m *missing) fail(kind Kind, err error) {
	m.once.Do(func() {
		m.log.Info("objects that are not written any more cannot be looked for; should an earlier run have written some, they stay",
			"kind", string(kind), "reason", explain(err))
		close(m.known)
	})
}

// succeed records that the kind has been listed.
func (m *missing) succeed() { m.once.Do(func() { close(m.known) }) }

// awaitRetired waits until the objects of the retired kinds are known, or cannot be: for a
// rehearsal, which looks once.
func (v *view) awaitRetired(ctx context.Context) {
	for _, m := range v.retired {
		select {
		case <-m.known:
		case <-ctx.Done():
		}
	}
}

// removed deletes objects of a kind that is no longer written. That waits for no source,
// because an operator has decided it.
func removed(have []Observed) []Action {
	actions := plan(nil, have, func(Observed) wait { return wait{} })
	for i := range actions {
		actions[i].Reason = "sidecars is off"
	}
	return actions
}
