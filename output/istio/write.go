package istio

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/controller"
	"github.com/isthmus-mesh/isthmus/source"
)

// Options are a writer's settings beside its configuration.
type Options struct {
	// Instance marks the objects of this Isthmus.
	Instance string
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
	Log     *slog.Logger // may be nil

	settle time.Duration // see settleFor, which zero means
}

// Writer writes a catalog to an API server. [New] makes one.
type Writer struct {
	config  Config
	options Options
	log     *slog.Logger
	remote  *remote
	reviews *reviews // for [Writer.Rights] only
	view    *view
	leader  *leader // nil if there is no election
	changes *controller.Gatherer[Key]

	newest      atomic.Pointer[world]
	sourceFacts atomic.Pointer[sourceFacts] // replaced by one goroutine: of compare, or of Plan
	primed      chan struct{}               // closed with the first world
	term        atomic.Pointer[controller.Controller[Key]]

	baseline string // identifies the API server's objects, for this process alone
	// offered is the sources offered together with each source. reported is since when each
	// source has held objects. The goroutine of compare owns both.
	offered  map[string]map[string]bool
	reported map[string]time.Time

	leftMu sync.Mutex    // guards left
	left   []string      // sources that have left, and are not handled yet
	woken  chan struct{} // holds a token when the state of a source has changed

	ledger   ledger
	known    knownServices
	followed followedServices
	settling settling
	// rehearses means that nothing is written, and the plan is the final state.
	rehearses bool
}

// world is the newest catalog.
type world struct {
	*catalog.Snapshot
	complete    bool
	sourceFacts *sourceFacts
	served      map[Key]map[uint64]bool // see sockets
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
	w := &Writer{
		config: c, options: o, log: o.Log.With("output", "istio"), primed: make(chan struct{}), woken: make(chan struct{}, 1),
		baseline: "istio/" + rand.Text()[:8], offered: map[string]map[string]bool{}, reported: map[string]time.Time{},
	}
	w.ledger.init()
	w.sourceFacts.Store(&sourceFacts{restored: o.Restored, left: map[string]bool{}})
	var err error
	open := func() error { return nil }
	if c.LeaderElection.Enabled {
		if w.leader, err = newLeader(c.LeaderElection, target, w.log); err != nil {
			return nil, err
		}
		open = w.leader.lock.open
	}
	if w.remote, err = newRemote(target, c.QPS, c.Burst, open); err != nil {
		return nil, err
	}
	if w.reviews, err = newReviews(target); err != nil {
		return nil, err
	}
	if w.view, err = newView(target, o.Instance, c, w.log, w.observed); err != nil {
		return nil, err
	}
	w.changes = controller.NewGatherer(c.Debounce.Due, w.deliver)
	return w, nil
}

func (c Config) kinds() []Kind {
	kinds := []Kind{ServiceEntry}
	if c.Endpoints.mayBeWorkloads() {
		kinds = append(kinds, WorkloadEntry)
	}
	if c.Sidecars {
		kinds = append(kinds, Sidecar)
	}
	return kinds
}

// Publish takes the next snapshot and the change that led to it. complete means that every
// source is primed. It has the signature for [catalog.NewGate], must be called by one
// goroutine at a time, and does not block.
func (w *Writer) Publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	w.followed.published(change) // before a reconciliation can see it
	before := w.newest.Swap(&world{Snapshot: s, complete: complete})
	if before == nil {
		close(w.primed)
		return // each term begins with all keys
	}
	if change.Primed || change.Judged || complete != before.complete {
		w.wake()
	}
	if w.term.Load() == nil {
		return
	}
	keys := w.concerned(before.Snapshot, s, change)
	if change.Primed || change.Judged || complete != before.complete {
		// Objects that waited for a source may proceed.
		w.enqueue(controller.Low, w.keys())
	}
	w.ledger.committed(keys, change.Committed)
	w.changes.Add(keys...)
}

// review enqueues all keys.
func (w *Writer) review() {
	if w.newest.Load() != nil && w.term.Load() != nil {
		w.enqueue(controller.Low, w.keys())
	}
}

// look returns the newest catalog. The judgements are read first, because they are
// published only after the records they are about.
func (w *Writer) look() *world {
	sourceFacts := w.sourceFacts.Load()
	newest := *w.newest.Load()
	newest.sourceFacts, newest.served = sourceFacts, map[Key]map[uint64]bool{}
	return &newest
}

// Run writes until ctx ends: while this replica leads, if there are several. It returns
// when no work is in progress.
func (w *Writer) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { w.view.run(klog.NewContext(ctx, klogTo(w.log))) })
	parts.Go(func() { w.changes.Run(ctx) })
	parts.Go(func() { w.compare(ctx) })
	if w.leader == nil {
		w.write(ctx)
		return
	}
	w.leader.run(ctx, w.write)
}

// write is one term of writing. All keys are reconciled anew, against the existing view of
// the API server.
func (w *Writer) write(ctx context.Context) {
	w.ledger.begin()
	defer w.followed.end()
	filled := make(chan struct{})
	term := controller.New(controller.Config[Key]{
		Reconcile: w.reconcile,
		Workers:   workers,
		Permit:    w.remote.pace.take,
		Gates:     append(w.gates(), controller.Gate{Name: "what there is to look at", Open: filled}),
	})
	w.term.Store(term)
	defer w.term.Store(nil)
	var filling sync.WaitGroup
	filling.Go(func() {
		if w.waitPrimed(ctx) {
			term.Add(controller.Low, w.keys()...)
			close(filled)
		}
	})
	term.Run(ctx)
	filling.Wait()
}

// workers is the number of keys written at a time. The API server answers within some
// milliseconds, so the configured rate bounds the writes.
const workers = 8

func (w *Writer) gates() []controller.Gate {
	gates := []controller.Gate{{Name: "the catalog", Open: w.primed}}
	for _, kind := range w.config.kinds() {
		gates = append(gates, controller.Gate{Name: "the API server's listing of " + kind.Resource(), Open: w.view.listed(kind)})
	}
	if m := w.view.retired[WorkloadEntry]; m != nil { // a service may still be in that form
		gates = append(gates, controller.Gate{Name: "the API server's listing of " + WorkloadEntry.Resource(), Open: m.known})
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
func (w *Writer) deliver(keys []Key) { w.enqueue(controller.High, keys) }

func (w *Writer) enqueue(p controller.Priority, keys []Key) {
	if term := w.term.Load(); term != nil {
		term.Add(p, keys...)
	}
}

// observed handles a change of an own object. The change may be the echo of an own write,
// or another writer's: the reconciler decides.
func (w *Writer) observed(old, now *Observed) {
	term := w.term.Load()
	if term == nil {
		return
	}
	for _, o := range []*Observed{old, now} {
		if o == nil {
			continue
		}
		w.followed.seen(o)
		term.Observed(o.key())
		if w.ledger.echo(o, now) {
			term.Add(controller.Low, o.key()) // most likely in order, but a check costs little
		} else {
			term.Add(controller.High, o.key())
		}
	}
}
