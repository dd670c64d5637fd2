package app

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/istio"
)

// istioOutput is the output istio. It shares the catalog with the others,
// unless it is to write some sources only: it then has one of its own, since
// what services are made of is another. A nil output does nothing.
type istioOutput struct {
	app    *App
	writer *istio.Writer
	only   []string // the sources it is to write; none means all

	gate    *catalog.Gate // nil if it shares the catalog
	ranking ranking
}

// offerIstio makes the output istio.
func (a *App) offerIstio(c *config.Config, timed *stages, metrics *prometheus.Registry) error {
	if c.Outputs.Istio == nil {
		return nil
	}
	o := &istioOutput{app: a, only: c.Outputs.Istio.Sources}
	var err error
	o.writer, err = istio.New(*c.Outputs.Istio, istio.Options{
		Instance: c.Instance, Sources: o.sources, Restored: o.those(a.restored()), Log: a.log, Judge: a.fleet,
		Written: func(took time.Duration) { timed.commitToAccept.WithLabelValues("istio").Observe(took.Seconds()) },
	})
	if err != nil {
		return fmt.Errorf("outputs.istio.%w", err)
	}
	if len(o.only) > 0 {
		required, optional := o.requirements(c)
		o.gate = catalog.NewGate(required, optional, optionalWait, o.writer.Publish)
		o.ranking.set(o.those(names(c)))
	}
	metrics.MustRegister(&istioCollector{o.writer})
	a.istio = o
	return nil
}

// sources are those that are there and to be written.
func (o *istioOutput) sources() []string { return o.those(o.app.fleet.names()) }

// those are the ones of a list that are to be written.
func (o *istioOutput) those(names []string) []string {
	if len(o.only) == 0 {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(o.only, name) })
}

func (o *istioOutput) requirements(c *config.Config) (required, optional []string) {
	required, optional = requirements(c)
	return o.those(required), o.those(optional)
}

// publish takes what the catalog of all sources says.
func (o *istioOutput) publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	if o != nil && o.gate == nil {
		o.writer.Publish(s, change, complete)
	}
}

// require and arrange follow the configuration.
func (o *istioOutput) require(c *config.Config) {
	if o != nil && o.gate != nil {
		o.gate.Require(o.requirements(c))
	}
}

func (o *istioOutput) arrange(order []string) {
	if o != nil && o.gate != nil {
		o.ranking.set(o.those(order))
	}
}

// gone says that a source is not configured any more.
func (o *istioOutput) gone(source string) {
	if o != nil {
		o.writer.Left(source)
	}
}

func (o *istioOutput) stop() {
	if o != nil && o.gate != nil {
		o.gate.Stop()
	}
}

// launch starts the writer, and its catalog if it has one.
func (o *istioOutput) launch(ctx context.Context, launch func(run func() error)) {
	if o == nil {
		return
	}
	launch(func() error { o.writer.Run(ctx); return nil })
	if o.gate != nil {
		launch(func() error { return unlessStopped(ctx, o.merge(ctx)) })
	}
}

// merge keeps the catalog of the sources that are to be written.
func (o *istioOutput) merge(ctx context.Context) error {
	merger := catalog.NewMerger(func(s *catalog.Snapshot, change catalog.Change) {
		o.gate.Publish(s, change)
	})
	for {
		reign, order := o.ranking.reign(ctx)
		watch := onlyOf(o.app.store.Watch(reign, model.Filter{}), o.only)
		err := merger.Run(watch, order)
		if ctx.Err() != nil || reign.Err() == nil {
			return err
		}
	}
}

// onlyOf leaves the records of other sources out of a watch.
func onlyOf(watch iter.Seq2[model.Batch, error], sources []string) iter.Seq2[model.Batch, error] {
	other := func(e model.Event) bool {
		switch e := e.(type) {
		case model.Upsert:
			return !slices.Contains(sources, e.Record.Source)
		case model.Delete:
			return !slices.Contains(sources, e.Record.Source)
		}
		return false
	}
	return func(yield func(model.Batch, error) bool) {
		for batch, err := range watch {
			batch.Events = slices.DeleteFunc(slices.Clone(batch.Events), other)
			if err == nil && len(batch.Events) == 0 {
				continue
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}
