package view

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// missing is the first reason why a kind could not be listed. Nothing waits for a retired
// kind. Its rights may be missing, since no version has needed them, or the API server may
// not know it.
type missing struct {
	once  sync.Once
	known chan struct{} // closed with the first reason, or when the kind has been listed
	log   *slog.Logger
}

func newMissing(log *slog.Logger) *missing { return &missing{known: make(chan struct{}), log: log} }

func (m *missing) fail(kind object.Kind, err error) {
	m.once.Do(func() {
		m.log.Info("objects of a kind that is no longer written cannot be listed: those of an earlier run are not deleted",
			"kind", string(kind), "reason", apiserver.Explain(err))
		close(m.known)
	})
}

// succeed records that the kind has been listed.
func (m *missing) succeed() { m.once.Do(func() { close(m.known) }) }

// Await waits until a channel is closed, and the objects of the retired kinds are known or
// cannot be: for a plan without writes, which looks once. It returns an error once the API
// server cannot be listed.
func (v *View) Await(ctx context.Context, listed <-chan struct{}) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case <-listed:
			waiting = false
		case <-tick.C:
			if reason, _ := v.Trouble(); reason != "" {
				return fmt.Errorf("the API server cannot be listed: %s", reason)
			}
		}
	}
	for _, m := range v.retired {
		select {
		case <-m.known:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Known returns a channel that is closed once the objects of a kind are known, or cannot be
// if the kind is retired; nil for a kind that is not followed.
func (v *View) Known(kind object.Kind) <-chan struct{} {
	if m := v.retired[kind]; m != nil {
		return m.known
	}
	if v.kinds[kind] == nil {
		return nil
	}
	return v.listed(kind)
}
