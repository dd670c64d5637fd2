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

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// Rehearsal is what would be written, and what it is made of.
type Rehearsal struct {
	Sources []source.Status
	Writers []string // the outputs that would write
	output.Plan
}

// Rehearse puts the same parts together as [New] does, reads the sources and, if
// there are outputs that write, the systems they write to, until ctx ends. It
// serves, writes and stores nothing: what was stored by an earlier run is not
// looked at either. Beside an error there are the sources as they stand by then,
// if it came to reading them.
func Rehearse(ctx context.Context, c *config.Config, log *slog.Logger) (r Rehearsal, err error) {
	quiet := *c
	quiet.Store.DataDir = ""
	m := thisMachine()
	m.listen = func(context.Context, string, string) (net.Listener, error) { return nobody{}, nil }
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
	for _, s := range a.fleet.supervisors() {
		r.Sources = append(r.Sources, s.Status())
	}
	stop()
	return r, errors.Join(err, parts.Wait())
}

// rehearse waits until everything is known, and asks what would be written.
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

// awaitAll waits until every branch has let its first snapshot through.
func (a *App) awaitAll(ctx context.Context, known []<-chan struct{}) error {
	for _, open := range known {
		select {
		case <-open:
		case <-ctx.Done():
			return fmt.Errorf("not everything could be read in time: %s; fix that, or give it more time with --timeout", strings.Join(a.missing(), "; "))
		}
	}
	return nil
}

// nobody is a listener that nobody can reach.
type nobody struct{}

func (nobody) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (nobody) Close() error              { return nil }
func (nobody) Addr() net.Addr            { return &net.TCPAddr{} }
