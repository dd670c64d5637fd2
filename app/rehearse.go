package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// Rehearsal is the objects that would be written, and the state of their sources.
type Rehearsal struct {
	Sources []source.Status
	Writers []string // the outputs that would write
	// Warnings are the assumptions under which the plan holds.
	Warnings []string
	// Unmet lists the splits that do not divide calls as they ask, with the reason. It is of
	// use if all sources were read.
	Unmet []string
	// Services is the catalog of the sources that were read.
	Services *catalog.Snapshot
	output.Plan
}

// Rehearse assembles the same parts as [New]. Until ctx ends, it reads the sources and, if
// there are outputs that write, the systems they write to. It serves, writes and stores
// nothing, and does not read the store of an earlier run. An error comes with the current
// status of the sources, if they were read at all.
func Rehearse(ctx context.Context, c *config.Config, log *slog.Logger) (r Rehearsal, err error) {
	quiet := *c
	quiet.Store.DataDir = ""
	m := thisMachine()
	m.Listen = func(context.Context, string, string) (net.Listener, error) { return nobody{}, nil }
	a, err := assemble(ctx, &quiet, "", log, m, true)
	if err != nil {
		return r, err
	}
	defer a.stopGates()
	var known []<-chan struct{} // closed once the gate of a branch is open
	for _, b := range a.branches {
		open := make(chan struct{})
		opened := sync.OnceFunc(func() { close(open) })
		b.merged = func(catalog.Change) { opened() }
		known = append(known, open)
	}
	running, stop := context.WithCancel(ctx)
	parts, running := errgroup.WithContext(running)
	a.read(running, parts)
	r, err = a.rehearse(running, known)
	stop()
	err = errors.Join(err, parts.Wait())
	for _, s := range a.fleet.supervisors() { // a listing passes the gate before its source's status shows it
		r.Sources = append(r.Sources, s.Status())
	}
	for _, b := range a.branches {
		r.Warnings = append(r.Warnings, b.assumed...)
	}
	r.Services = a.branches[0].gate.Snapshot()
	r.Unmet = admin.UnmetSplits(Splits(c), r.Services)
	return r, err
}

// rehearse waits for all first snapshots, and plans the writes.
func (a *App) rehearse(ctx context.Context, known []<-chan struct{}) (r Rehearsal, err error) {
	if err := a.awaitAll(ctx, known); err != nil {
		return r, err
	}
	for _, o := range a.outputs {
		writer, ok := o.Output.(output.Planner)
		if !ok {
			continue
		}
		plan, err := writer.Plan(ctx)
		if err != nil {
			return r, fmt.Errorf("outputs.%s: %w", o.kind, err)
		}
		r.Writers = append(r.Writers, o.kind)
		r.Rights = plan.Rights
		r.Actions, r.LeftOut = append(r.Actions, plan.Actions...), append(r.LeftOut, plan.LeftOut...)
	}
	return r, nil
}

// awaitAll waits until every branch has passed its first snapshot on.
func (a *App) awaitAll(ctx context.Context, known []<-chan struct{}) error {
	for _, open := range known {
		select {
		case <-open:
		case <-ctx.Done():
			var missing []string
			for _, o := range a.missing() {
				missing = append(missing, o.String())
			}
			for _, b := range a.branches {
				missing = append(missing, b.reasons()...)
			}
			return fmt.Errorf("not everything could be read in time: %s; fix that, or give it more time with --timeout", strings.Join(missing, "; "))
		}
	}
	return nil
}

// nobody is a listener without connections.
type nobody struct{}

func (nobody) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (nobody) Close() error              { return nil }
func (nobody) Addr() net.Addr            { return &net.TCPAddr{} }
