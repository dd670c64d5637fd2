package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/output"
)

// namedOutput is an output with its key in the configuration.
type namedOutput struct {
	kind string
	output.Output
}

// openOutputs opens every output of the configuration, each on the branch of its
// sources.
func (a *App) openOutputs(ctx context.Context, c *config.Config, version string, timed *stages) error {
	var errs []error
	for _, o := range c.Outputs {
		b := a.branchOf(ctx, o, c)
		for _, warning := range o.Settings.Warnings() {
			a.log.Warn("the listener is exposed", "output", o.Kind, "warning", warning)
		}
		opened, err := o.Settings.Open(ctx, output.Env{
			Instance: c.Instance, Self: a.self, Version: version, RootNamespace: c.RootNamespace,
			Sources: func() []string { return b.those(a.fleet.names()) },
			Records: a.store, States: a.fleet.states,
			Restored: b.those(a.restored()), Judge: a.fleet,
			Sent: observing(timed.commitToSend.WithLabelValues(o.Kind)), ACKed: observing(timed.commitToAccept.WithLabelValues(o.Kind)),
			Listen: a.listen, Identity: a.trust.verifier, Certificates: a.trust.clients, Servers: a.trust.servers, Events: a.events, Log: a.log,
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("outputs.%s.%w", o.Kind, err))
			continue
		}
		b.outputs = append(b.outputs, &delivery{Output: opened, kind: o.Kind})
		a.outputs = append(a.outputs, namedOutput{o.Kind, opened})
	}
	return errors.Join(errs...)
}

// branchOf returns the branch of an output.
func (a *App) branchOf(ctx context.Context, o config.Output, c *config.Config) *branch {
	sources, found := selectionOf(ctx, o.Settings, c, a.once)
	to, compares := targetOf(o.Settings, a.once)
	if compares {
		for _, l := range a.leftover { // the cluster that it read is unknown
			sources = sources.with(l.name, unknown)
		}
	}
	if len(sources.out) > 0 {
		a.log.Info("sources that read the API server that is written to are not written to it", "output", o.Kind, "sources", sources.out)
	}
	b := a.branchWith(sources, c)
	b.renewed = a.fleet.hasRenewed
	if compares {
		b.target = to
	}
	for i := range found {
		b.start(&found[i], a.log.With("output", o.Kind))
	}
	return b
}

// branchWith returns a branch of some sources. A branch with sources of an unknown cluster
// is never shared: it depends on the cluster that its output writes to.
func (a *App) branchWith(sources selection, c *config.Config) *branch {
	for _, b := range a.branches {
		if len(sources.unknown) == 0 && b.selection().equal(sources) {
			return b
		}
	}
	b := newBranch(sources, c, a.restored(), a.machine.OptionalWait)
	b.faults = a.faults
	a.branches = append(a.branches, b)
	return b
}

// listen binds a listener for an output, or for the admin API.
func (a *App) listen(ctx context.Context, network, address string) (net.Listener, error) {
	l, err := a.machine.Listen(ctx, network, address)
	if err == nil {
		a.listeners = append(a.listeners, l)
	}
	return l, err
}

func observing(o prometheus.Observer) func(time.Duration) {
	return func(took time.Duration) { o.Observe(took.Seconds()) }
}

// reports yields the reports of the outputs, by their keys and in their order.
func (a *App) reports(yield func(kind string, r output.Report) bool) {
	for _, o := range a.outputs {
		if !yield(o.kind, o.Report()) {
			return
		}
	}
}

// Addr returns the listen address of an output, by its key in the configuration; nil if it
// has none, or there is no such output.
func (a *App) Addr(kind string) net.Addr {
	for k, r := range a.reports {
		if k == kind {
			return r.Addr
		}
	}
	return nil
}
