package istio

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/internal/kubeevents"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
	"github.com/isthmus-mesh/isthmus/output/istio/baseline"
	"github.com/isthmus-mesh/isthmus/output/istio/dryrun"
	"github.com/isthmus-mesh/isthmus/output/istio/lease"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
	"github.com/isthmus-mesh/isthmus/output/istio/observed"
	"github.com/isthmus-mesh/isthmus/output/istio/plan"
	"github.com/isthmus-mesh/isthmus/output/istio/rights"
	"github.com/isthmus-mesh/isthmus/output/istio/view"
	"github.com/isthmus-mesh/isthmus/output/istio/write"
	"github.com/isthmus-mesh/isthmus/source"
)

// Options are a writer's settings beside its configuration.
type Options struct {
	// Instance marks the objects of this Isthmus.
	Instance string
	// RootNamespace is Istio's; see [translate.Settings].
	RootNamespace string
	// Sources returns the names of the written sources of the configuration. Objects of other
	// sources may belong to any source at the start, and need not wait for these later. Nil
	// means that every source counts as configured.
	Sources func() []string
	// Restored names the sources with restored records of an earlier process at the start.
	// Their objects in the API server wait for the first listing, but are not compared with
	// it: the source's own records are more exact.
	Restored []string
	// Judge takes baselines of the API server's objects. No object is deleted before it was
	// judged, nor while it is held. Without a Judge every source is confirmed as soon as it is
	// primed.
	Judge source.Judge
	// Written is called with the time from a change's commit to its write; may be nil.
	Written func(took time.Duration)
	// Events takes the changes of the leading replica; may be nil.
	Events *events.Log
	Log    *slog.Logger // may be nil

	settle time.Duration // see settleFor, which zero means
}

// Writer writes a catalog to an API server. [New] makes one.
type Writer struct {
	config  Config
	options Options
	log     *slog.Logger

	view      *view.View
	planner   *plan.Planner
	baselines *baseline.Baselines
	remote    *write.Remote
	writes    *write.Writes
	written   *write.Written   // of the writes
	reviews   *rights.Reviewer // for [Writer.Rights] only
	leader    *lease.Election  // nil if there is no election
	events    *kubeevents.Recorder
	reporter  *kubeevents.Client // of the events
	changes   *controller.Gatherer[object.Key]

	newest atomic.Pointer[published]
	primed chan struct{} // closed with the first catalog
	term   atomic.Pointer[controller.Controller[object.Key]]
}

// published is the newest catalog.
type published struct {
	*catalog.Snapshot
	complete bool
}

// New returns a writer to the API server that the configuration names. It does not connect
// yet.
func New(c Config, o Options) (*Writer, error) {
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	return newWriter(c, o, target)
}

func newWriter(c Config, o Options, target *rest.Config) (*Writer, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	w := &Writer{config: c, options: o, log: o.Log.With("output", "istio"), primed: make(chan struct{})}
	settings, needs, open := c.settings(o.Instance), rights.Needs{}, func() error { return nil }
	settings.RootNamespace = o.RootNamespace
	var err error
	if l := c.LeaderElection; l.Enabled {
		needs.Namespace, needs.Lease = l.Namespace, l.Name
		if w.leader, err = lease.New(l.Namespace, l.Name, target, o.Events, w.log); err != nil {
			return nil, err
		}
		open = w.leader.Open
	}
	if w.remote, err = write.NewRemote(target, c.QPS, c.Burst, open); err != nil {
		return nil, err
	}
	needs.Kinds = settings.Kinds()
	if w.reviews, err = rights.New(target, needs); err != nil {
		return nil, err
	}
	if w.view, err = view.New(target, o.Instance, settings.Kinds(), settings.Retired(), w.log, w.observed); err != nil {
		return nil, err
	}
	w.planner = plan.New(settings, w.view.Objects, cmp.Or(o.settle, plan.SettleFor))
	name := "istio/" + rand.Text()[:8]
	w.baselines = baseline.New(name, o.Judge, w.view.Objects, settings, o.Restored, w.log)
	through, err := rest.TransportFor(target)
	if err != nil {
		return nil, err
	}
	if w.reporter, err = kubeevents.NewClient(target, through, o.Instance); err != nil {
		return nil, err
	}
	w.events = kubeevents.New(w.log)
	w.writes = write.New(o.Instance, w.remote, w.events, w.log)
	w.written = w.writes.Written
	w.changes = controller.NewGatherer(c.Debounce.Due, w.deliver)
	return w, nil
}

// Publish takes the next snapshot and the change that led to it. complete means that every
// source is primed. It has the signature for [gate.New], must be called by one
// goroutine at a time, and does not block.
func (w *Writer) Publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	w.planner.Published(change) // before a reconciliation can see it
	before := w.newest.Swap(&published{s, complete})
	if before == nil {
		close(w.primed)
		return // each term begins with all keys
	}
	if change.Primed || change.Judged || complete != before.complete {
		w.baselines.Wake()
	}
	if w.term.Load() == nil {
		return
	}
	keys := w.planner.Concerned(before.Snapshot, s, change)
	if change.Primed || change.Judged || complete != before.complete {
		// Objects that waited for a source may proceed.
		w.enqueue(controller.Low, w.keys())
	}
	w.written.Committed(keys, change.Committed)
	w.changes.Add(keys...)
}

// review enqueues all keys.
func (w *Writer) review() {
	if w.newest.Load() != nil && w.term.Load() != nil {
		w.enqueue(controller.Low, w.keys())
	}
}

// keys returns every key with a desired or an existing object.
func (w *Writer) keys() []object.Key { return w.planner.Keys(w.newest.Load().Snapshot) }

// look returns the facts for a plan. The facts about sources are read first, because they
// are stored only after the records they are about are published.
func (w *Writer) look() *plan.Facts {
	known, newest := w.baselines.Facts(), w.newest.Load()
	f := &plan.Facts{Snapshot: newest.Snapshot, Complete: newest.complete, Known: known, Any: w.options.Sources == nil}
	if !f.Any {
		f.Sources = w.options.Sources()
	}
	if w.options.Judge != nil {
		f.Baseline = w.baselines.Name
	}
	return f
}

// RemoveSource records that a source has left the configuration, or was replaced by another
// of the same name: nothing has to wait for it. It does not block.
func (w *Writer) RemoveSource(source string) { w.baselines.Leave(source) }

// compare offers baselines until ctx ends.
func (w *Writer) compare(ctx context.Context) {
	if !w.waitPrimed(ctx) {
		return
	}
	for {
		if w.baselines.TakeLeave() {
			w.review()
		}
		w.baselines.Offer(ctx, w.look())
		w.baselines.Report(w.look())
		select {
		case <-ctx.Done():
			return
		case <-w.baselines.Woken():
		}
	}
}

// Run writes until ctx ends: while this replica leads, if there are several. It returns
// when no work is in progress.
func (w *Writer) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { w.view.Run(klog.NewContext(ctx, apiserver.Klog(w.log))) })
	parts.Go(func() { w.changes.Run(ctx) })
	parts.Go(func() { w.compare(ctx) })
	parts.Go(func() { w.events.Run(ctx, w.reporter) })
	if w.leader == nil {
		w.write(ctx)
		return
	}
	w.leader.Run(ctx, w.write)
}

// write is one term of writing. All keys are reconciled anew, against the existing view of
// the API server.
func (w *Writer) write(ctx context.Context) {
	w.written.Begin()
	defer w.planner.EndTerm()
	term := controller.New(controller.Config[object.Key]{
		Gates:     w.gates(),
		Keys:      w.keys,
		Reconcile: w.reconcile,
		Workers:   workers,
		Permit:    w.remote.Permit,
	})
	w.term.Store(term)
	defer w.term.Store(nil)
	term.Run(ctx)
}

// workers is the number of keys written at a time. The API server answers within some
// milliseconds, so the configured rate bounds the writes.
const workers = 8

func (w *Writer) gates() []controller.Gate {
	gates := []controller.Gate{{Name: "the catalog", Open: w.primed}}
	settings := w.config.settings(w.options.Instance)
	for _, kind := range slices.Concat(settings.Kinds(), settings.Retired()) {
		if kind == object.WorkloadEntry || settings.WhyRetired(kind) == "" { // a service may still be in a retired form
			gates = append(gates, controller.Gate{Name: "the API server's listing of " + kind.Resource(), Open: w.view.Known(kind)})
		}
	}
	return gates
}

// waitPrimed waits until every gate is open; false means that ctx ended first.
func (w *Writer) waitPrimed(ctx context.Context) bool {
	for _, gate := range w.gates() {
		select {
		case <-ctx.Done():
			return false
		case <-gate.Open:
		}
	}
	return true
}

// deliver enqueues the gathered keys. Without a term they are not needed.
func (w *Writer) deliver(keys []object.Key) { w.enqueue(controller.High, keys) }

func (w *Writer) enqueue(p controller.Priority, keys []object.Key) {
	if term := w.term.Load(); term != nil {
		term.Add(p, keys...)
	}
}

// observed handles a change of an entry in the view. The change of an own object may be the
// echo of an own write, or another writer's: the reconciler decides.
func (w *Writer) observed(before, after any) {
	term := w.term.Load()
	if term == nil {
		return
	}
	for _, entry := range []any{before, after} {
		if other, newest := observed.OtherFrom(entry), w.newest.Load(); other != nil && newest != nil {
			term.Add(controller.Low, w.planner.RulesBeside(newest.Snapshot, *other)...)
		}
	}
	old, now := observed.From(before), observed.From(after)
	for _, o := range []*object.Observed{old, now} {
		if o == nil {
			continue
		}
		w.planner.Seen(o)
		term.Observed(o.Key())
		if w.written.Echo(o, now) {
			term.Add(controller.Low, o.Key()) // most likely in order, but a check costs little
		} else {
			term.Add(controller.High, o.Key())
		}
	}
}

// reconcile brings the objects of one key to the desired state.
func (w *Writer) reconcile(ctx context.Context, key object.Key) (controller.Outcome, error) {
	p := w.plan(ctx, w.look(), key)
	w.writes.Troubles.Taken(key, p.Other, p.Invalid)
	if len(p.Actions) == 0 && !p.Partly {
		w.writes.Troubles.Forget(key)
	}
	expected, rest, err := w.writes.Batch(ctx, w.term.Load(), p.Actions)
	if ctx.Err() != nil {
		return controller.Outcome{}, ctx.Err()
	}
	outcome := controller.Outcome{After: p.After, Throttled: rest.Waits, Urgency: rest.Urgency}
	if err == nil && !outcome.Throttled {
		if took, ok := w.written.Reached(key); ok && w.options.Written != nil {
			w.options.Written(took)
		}
	}
	if len(expected) > 0 {
		outcome.Await = func() bool { return expected.SeenIn(w.view.Objects) }
	}
	return outcome, err
}

// plan plans the actions on the objects of a key, and records the plan.
func (w *Writer) plan(ctx context.Context, f *plan.Facts, key object.Key) plan.Plan {
	p := w.planner.Plan(f, key)
	w.enqueue(controller.High, p.Owners)
	handedOver := plan.Selectable(p.Actions)
	var selecting []plan.Selecting
	unknown := ""
	if len(handedOver) > 0 {
		var err error
		if selecting, err = w.remote.Selecting(ctx, key.Namespace); err != nil {
			unknown = "unknown whether a ServiceEntry selects it: " + apiserver.Explain(err)
		}
	}
	p.After = max(p.After, w.planner.KeepSelected(key, handedOver, selecting, unknown))
	w.written.Planned(key, p)
	return p
}

// Plan lists the API server's objects, compares them with the last published snapshot, and
// returns the action on each object, ordered by object. It writes nothing and takes no part
// in the election. It replaces [Writer.Run], and requires a [Writer.Publish] before.
func (w *Writer) Plan(ctx context.Context) ([]plan.Action, []write.Omission, error) {
	w.planner.Rehearse()
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { w.view.Run(klog.NewContext(ctx, apiserver.Klog(w.log))) })
	if err := w.awaitFacts(ctx); err != nil {
		return nil, nil, err
	}
	facts := w.look()
	var all []plan.Action
	for _, key := range w.keys() {
		all = append(all, w.plan(ctx, facts, key).Actions...)
	}
	all, err := dryrun.Rehearsal{Remote: w.remote, Planner: w.planner, Facts: facts}.Complete(ctx, all)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	return all, w.written.Omissions(), nil
}

// awaitFacts waits until the API server has been listed, or cannot be, and then for all
// judgements about it.
func (w *Writer) awaitFacts(ctx context.Context) error {
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		w.waitPrimed(ctx)
	}()
	if err := w.view.Await(ctx, listed); err != nil {
		return err
	}
	for !w.baselines.Settled(w.look()) {
		w.baselines.Offer(ctx, w.look())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.baselines.Woken():
		}
	}
	return nil
}

// Rights returns the missing rights to follow the API server, and to write in namespaces.
// Without namespaces it asks for rights in all of them, as the manifests in the reference
// do.
func (w *Writer) Rights(ctx context.Context, namespaces []string) output.Rights {
	return w.reviews.Rights(ctx, namespaces)
}
