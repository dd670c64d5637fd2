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

// Options are what a writer needs to know beside its configuration.
type Options struct {
	// Instance marks what this Isthmus owns.
	Instance string
	// Sources returns the names of those in the configuration that are written:
	// what only others have spoken of is anybody's at the start, and need not wait
	// for them later. Nil means that every source counts as there.
	Sources func() []string
	// Restored names the sources of which the catalog has, at the start, what an
	// earlier process knew. What the API server has of them waits for their first
	// listing, but is not compared with it: who reads them knows better.
	Restored []string
	// Judge takes what the API server has of a source. Nothing of it is taken away
	// before it was judged, nor while that is held. Without it every source is
	// confirmed as soon as it is primed.
	Judge source.Judge
	// Written is called with how long after its commit a change had been written; may be nil.
	Written func(took time.Duration)
	Log     *slog.Logger // may be nil

	settle time.Duration // see settleFor, which it is if it is zero
}

// Writer writes a catalog to an API server. Make one with [New].
type Writer struct {
	config  Config
	options Options
	log     *slog.Logger
	remote  *remote
	reviews *reviews // for [Writer.Rights] alone
	view    *view
	leader  *leader // nil if there is no election
	changes *controller.Gatherer[Key]

	newest      atomic.Pointer[world]
	sourceFacts atomic.Pointer[sourceFacts] // replaced by one goroutine: that of compare, or of Plan
	primed      chan struct{}               // closed with the first world
	term        atomic.Pointer[controller.Controller[Key]]

	baseline string // names what the API server has, to this process alone
	// offered tells of each source with which others it was, and reported since
	// when something is held of it. They belong to the goroutine of compare.
	offered  map[string]map[string]bool
	reported map[string]time.Time

	leftMu sync.Mutex    // guards left
	left   []string      // sources that have left, and are not looked at yet
	woken  chan struct{} // holds a token when the state of a source has changed

	ledger   ledger
	known    knownServices
	followed followedServices
	settling settling
	// rehearses says that nothing is written, so that what is planned is how it all ends.
	rehearses bool
}

// world is the newest catalog.
type world struct {
	*catalog.Snapshot
	complete    bool
	sourceFacts *sourceFacts
	served      map[Key]map[uint64]bool // see sockets
}

// New returns a writer to the API server that the configuration names. It does
// not speak to it yet.
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

// Publish takes the next snapshot and the change that led to it. complete says
// that every source is primed. It has the form that [catalog.NewGate] asks for,
// must be called by one goroutine at a time, and does not block.
func (w *Writer) Publish(s *catalog.Snapshot, change catalog.Change, complete bool) {
	w.followed.published(change) // before it can be looked at
	before := w.newest.Swap(&world{Snapshot: s, complete: complete})
	if before == nil {
		close(w.primed)
		return // each term begins with everything
	}
	if change.Primed || change.Judged || complete != before.complete {
		w.wake()
	}
	if w.term.Load() == nil {
		return
	}
	keys := w.concerned(before.Snapshot, s, change)
	if change.Primed || change.Judged || complete != before.complete {
		// What waited for a source need not wait any longer.
		w.enqueue(controller.Low, w.keys())
	}
	w.ledger.committed(keys, change.Committed)
	w.changes.Add(keys...)
}

// review has everything looked at again.
func (w *Writer) review() {
	if w.newest.Load() != nil && w.term.Load() != nil {
		w.enqueue(controller.Low, w.keys())
	}
}

// look returns the newest catalog. The judgements are read first, for they are
// published only after the records they are about.
func (w *Writer) look() *world {
	sourceFacts := w.sourceFacts.Load()
	newest := *w.newest.Load()
	newest.sourceFacts, newest.served = sourceFacts, map[Key]map[uint64]bool{}
	return &newest
}

// Run writes until ctx ends: for as long as this replica leads, if there are
// several. It returns when nothing is under way any more.
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

// write is one term of writing. Everything is looked at anew, but against what
// is known of the API server already.
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

// workers is how many keys are written at a time: the API server answers within
// some milliseconds, so it is the configured rate that bounds the writes.
const workers = 8

func (w *Writer) gates() []controller.Gate {
	gates := []controller.Gate{{Name: "the catalog", Open: w.primed}}
	for _, kind := range w.config.kinds() {
		gates = append(gates, controller.Gate{Name: "the API server's listing of " + kind.Resource(), Open: w.view.listed(kind)})
	}
	if m := w.view.retired[WorkloadEntry]; m != nil { // a service may be in that form still
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

// deliver hands on what was gathered. Without a term it is not needed.
func (w *Writer) deliver(keys []Key) { w.enqueue(controller.High, keys) }

func (w *Writer) enqueue(p controller.Priority, keys []Key) {
	if term := w.term.Load(); term != nil {
		term.Add(p, keys...)
	}
}

// observed takes note that an object of ours was seen to change. It may be the
// echo of an own write, or somebody's hand: the reconciler tells.
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
			term.Add(controller.Low, o.key()) // most likely in order, but it costs little to be sure
		} else {
			term.Add(controller.High, o.key())
		}
	}
}
