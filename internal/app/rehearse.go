package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output/istio"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
)

// rehearsal bounds how long a rehearsal may take.
const rehearsal = time.Minute

// Rehearsal is what would be written, and what it is made of.
type Rehearsal struct {
	Sources []source.Status
	Actions []istio.Action
	LeftOut []admin.Omission
}

// Rehearse reads the sources and, if there is an output that writes, the system
// it writes to. It serves, writes and stores nothing: what was stored by an
// earlier run is not looked at either.
func Rehearse(ctx context.Context, c *config.Config, log *slog.Logger) (Rehearsal, error) {
	ctx, cancel := context.WithTimeout(ctx, rehearsal)
	defer cancel()
	a := &App{log: log, machine: thisMachine(), primed: make(chan struct{}, 1), store: store.NewMemory(store.Config{})}
	a.machine.reader = onlyReaderOf
	a.fleet = &fleet{supervise: func(s config.Source) *source.Supervisor { return a.supervise(c, s) }}
	for _, s := range c.Sources {
		a.fleet.add(s)
	}
	a.ranking.set(names(c))
	metrics := prometheus.NewRegistry()
	if err := a.offerIstio(c, newStages(metrics), metrics); err != nil {
		return Rehearsal{}, err
	}
	defer a.istio.stop()
	known := make(chan struct{}, 1)
	required, optional := requirements(c)
	a.gate = catalog.NewGate(required, optional, optionalWait, func(s *catalog.Snapshot, change catalog.Change, complete bool) {
		a.istio.publish(s, change, complete)
		select {
		case known <- struct{}{}:
		default: // it is known already
		}
	})
	defer a.gate.Stop()
	return a.rehearse(ctx, known)
}

// onlyReaderOf is a reader that leaves nothing in the registry: hints cost a
// consumer there, and one complete listing needs none.
func onlyReaderOf(s configured) source.Source {
	if s.ServiceCenter != nil {
		quiet := *s.ServiceCenter
		quiet.Watch = false
		s.ServiceCenter = &quiet
	}
	return readerOf(s)
}

// rehearse runs what reads, for as long as it takes to know everything.
func (a *App) rehearse(ctx context.Context, known <-chan struct{}) (Rehearsal, error) {
	running, stop := context.WithCancel(ctx)
	parts, running := errgroup.WithContext(running)
	a.fleet.launch = parts.Go
	a.fleet.startAll(running)
	parts.Go(func() error { return unlessStopped(running, a.merge(running)) })
	if a.istio != nil && a.istio.gate != nil {
		parts.Go(func() error { return unlessStopped(running, a.istio.merge(running)) })
	}
	r, err := a.read(running, known)
	stop()
	return r, errors.Join(err, parts.Wait())
}

func (a *App) read(ctx context.Context, known <-chan struct{}) (r Rehearsal, err error) {
	select {
	case <-known:
	case <-ctx.Done():
		return r, fmt.Errorf("not everything is known after %s: %s", rehearsal, strings.Join(a.missing(), "; "))
	}
	if a.istio != nil {
		var left []istio.Omission
		r.Actions, left, err = a.istio.writer.Plan(ctx)
		for _, o := range left {
			r.LeftOut = append(r.LeftOut, omissions(o)...)
		}
	}
	for _, s := range a.fleet.supervisors() {
		r.Sources = append(r.Sources, s.Status())
	}
	return r, err
}
